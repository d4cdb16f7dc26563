//! The questions to the API server, as JSON, and its answers.

use serde_json::{Value, json};

use super::{User, Wish};
use crate::service::{GROUP, VERSION};

/// A question to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Review {
    /// Whose token this is.
    Token(String),
    /// Whether a user may read something.
    Access(User, Wish),
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The token is that of a user.
    User(User),
    /// The user may read it.
    Allowed,
    /// The token is invalid, or the user may not: why, as far as the API server says so.
    Denied(String),
}

impl Review {
    /// Returns the path of the API to which it is posted.
    pub fn path(&self) -> &'static str {
        match self {
            Review::Token(_) => "/apis/authentication.k8s.io/v1/tokenreviews",
            Review::Access(..) => "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        }
    }

    /// Returns the object to post.
    pub fn object(&self) -> Value {
        match self {
            Review::Token(token) => json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "spec": { "token": token },
            }),
            Review::Access(user, wish) => {
                let mut spec = json!({
                    "user": user.name,
                    "uid": user.uid,
                    "groups": user.groups,
                    "extra": user.extra,
                });
                match wish {
                    // A read of all objects of a resource is `list`, as the API server itself sees it.
                    Wish::Metric { namespace, name } => {
                        spec["resourceAttributes"] = json!({
                            "verb": "list",
                            "group": GROUP,
                            "version": VERSION,
                            "resource": name,
                            "namespace": namespace,
                        });
                    }
                    Wish::Path(path) => {
                        spec["nonResourceAttributes"] = json!({ "verb": "get", "path": path });
                    }
                }
                json!({
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SubjectAccessReview",
                    "spec": spec,
                })
            }
        }
    }

    /// Reads the object that the API server answers with. Whatever does not clearly allow, denies.
    pub fn verdict(&self, answer: &Value) -> Verdict {
        let status = &answer["status"];
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        match self {
            Review::Token(_) if status["authenticated"] == true => match user(&status["user"]) {
                Some(user) => Verdict::User(user),
                None => Verdict::Denied("the API server names no user".to_owned()),
            },
            Review::Token(_) => Verdict::Denied(text("error")),
            Review::Access(..) if status["allowed"] == true && status["denied"] != true => {
                Verdict::Allowed
            }
            Review::Access(..) => {
                let (reason, error) = (text("reason"), text("evaluationError"));
                Verdict::Denied(if reason.is_empty() { error } else { reason })
            }
        }
    }
}

fn user(value: &Value) -> Option<User> {
    let texts = |value: &Value| -> Option<Vec<String>> {
        match value {
            Value::Null => Some(Vec::new()),
            Value::Array(all) => all.iter().map(|one| Some(one.as_str()?.to_owned())).collect(),
            _ => None,
        }
    };
    let extra = match &value["extra"] {
        Value::Null => Some(std::collections::BTreeMap::new()),
        Value::Object(map) => {
            map.iter().map(|(key, value)| Some((key.clone(), texts(value)?))).collect()
        }
        _ => None,
    };
    let name = value["username"].as_str().filter(|name| !name.is_empty())?.to_owned();
    let uid = value["uid"].as_str().unwrap_or_default().to_owned();
    let groups = texts(&value["groups"])?;
    Some(User { name, uid, groups, extra: extra? }.authenticated())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> User {
        let groups = vec!["a".to_owned(), "system:authenticated".to_owned()];
        User { name: "alice".to_owned(), groups, ..User::default() }
    }

    #[test]
    fn reviews_have_what_the_api_server_needs() {
        let metric = Wish::Metric { namespace: "shop".to_owned(), name: "m".to_owned() };
        let object = Review::Access(alice(), metric).object();
        assert_eq!(
            object["spec"],
            json!({
                "user": "alice",
                "uid": "",
                "groups": ["a", "system:authenticated"],
                "extra": {},
                "resourceAttributes": {
                    "verb": "list",
                    "group": "external.metrics.k8s.io",
                    "version": "v1beta1",
                    "resource": "m",
                    "namespace": "shop",
                },
            })
        );
        let path = Review::Access(alice(), Wish::Path("/apis".to_owned())).object();
        assert_eq!(
            path["spec"]["nonResourceAttributes"],
            json!({ "verb": "get", "path": "/apis" })
        );
    }

    #[test]
    fn whatever_does_not_allow_denies() {
        let token = Review::Token("t".to_owned());
        let access = Review::Access(alice(), Wish::Path("/".to_owned()));
        let denied = |why: &str| Verdict::Denied(why.to_owned());
        for (review, status, expected) in [
            (
                &token,
                json!({ "authenticated": true, "user": { "username": "alice", "groups": ["a"] } }),
                Verdict::User(alice()),
            ),
            (&token, json!({ "authenticated": true }), denied("the API server names no user")),
            (
                &token,
                json!({ "authenticated": true, "user": { "username": "a", "groups": [1] } }),
                denied("the API server names no user"),
            ),
            (&token, json!({ "error": "expired" }), denied("expired")),
            (&token, json!({ "authenticated": "true" }), denied("")),
            (&token, Value::Null, denied("")),
            (&access, json!({ "allowed": true }), Verdict::Allowed),
            (&access, json!({ "allowed": true, "denied": true, "reason": "no" }), denied("no")),
            (&access, json!({ "allowed": false, "evaluationError": "late" }), denied("late")),
            (&access, json!({ "authenticated": true }), denied("")),
            (&access, Value::Null, denied("")),
        ] {
            assert_eq!(review.verdict(&json!({ "status": status })), expected, "{status}");
        }
    }
}
