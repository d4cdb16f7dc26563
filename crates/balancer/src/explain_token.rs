//! Who may request an explanation with `Weir-Explain`: anyone who has the token of `[log]
//! explain_token_file`, or else that of the admin API.

use std::sync::Arc;

use admin::{Door, Token, TokenError};
use model::Snapshot;
use proxy::MayExplain;

/// The admin API's token, valid for the lifetime of this process.
#[derive(Default)]
pub(crate) struct ExplainToken(Option<MayExplain>);

impl ExplainToken {
    /// Without an admin API, or if it requires no token, only `explain_token_file` is valid.
    pub(crate) fn new(door: Option<&Door>) -> ExplainToken {
        ExplainToken(door.and_then(Door::token).cloned().map(may_explain))
    }

    /// Returns who may request explanations while `snapshot` is in force. Reads the file if it
    /// names one.
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
