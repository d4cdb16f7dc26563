//! Who may ask by `Weir-Explain` why a request goes where it goes: whoever knows the token of
//! `[log] explain_token_file`, or else that of the admin API.

use std::sync::Arc;

use admin::{Door, Token, TokenError};
use model::Snapshot;
use proxy::MayExplain;

/// The admin API's token, which holds as long as this process.
#[derive(Default)]
pub(crate) struct ExplainToken(Option<MayExplain>);

impl ExplainToken {
    /// Without a door, or one that asks for no token, only a token of its own is good.
    pub(crate) fn new(door: Option<&Door>) -> ExplainToken {
        ExplainToken(door.and_then(Door::token).cloned().map(may_explain))
    }

    /// Who may ask while `snapshot` is in force. Reads the file if it names one.
    pub(crate) fn of(&self, snapshot: &Snapshot) -> Result<Option<MayExplain>, TokenError> {
        match &snapshot.log.explain_token_file {
            Some(file) => Token::read(file).map(|token| Some(may_explain(token))),
            None => Ok(self.0.clone()),
        }
    }
}

fn may_explain(token: Token) -> MayExplain {
    Arc::new(move |presented| token.is(presented))
}
