//! Asks the API server who clients of an aggregated API are and what they may read, and follows how its front proxy
//! authenticates. [`autoscaler::access`] has the questions and reads the answers.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use autoscaler::access::{FrontProxy, Review, Verdict};
use http::Method;
use os::clock::now;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::api::{self, Api};
use crate::failure::{Cause, Failure};

/// The ConfigMap in which the API server says how its front proxy authenticates.
const CONFIG_MAP: &str =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
/// How often it is read, and how soon after a failure.
const READ_EVERY: Duration = Duration::from_secs(60);
const READ_AGAIN: Duration = Duration::from_secs(5);
/// How long what was read last counts while it cannot be read.
const READ_KEPT: Duration = Duration::from_hours(1);
/// How long an answer may take. The API server itself waits 10 s for an aggregated API.
const REVIEW_MAX: Duration = Duration::from_secs(5);
/// Maximum number of questions about access at the API server, and of those that wait.
const ASKED_MAX: usize = 16;
const WAITING_MAX: usize = 64;
/// The same for questions about tokens. Any client can cause them, so that they must not delay the others.
const TOKENS_ASKED_MAX: usize = 4;
const TOKENS_WAITING_MAX: usize = 16;

type Question = (Review, oneshot::Sender<Result<Verdict, String>>);

/// Asks the API server, from any thread.
#[derive(Clone, Debug)]
pub struct Reviews {
    questions: mpsc::Sender<Question>,
    token_questions: mpsc::Sender<Question>,
    /// How the front proxy of the API server authenticates, as last read; `None`: unknown.
    pub front_proxy: watch::Receiver<Option<Arc<FrontProxy>>>,
}

impl Reviews {
    /// Asks a question.
    ///
    /// # Errors
    /// There is no answer: why, one line.
    pub async fn ask(&self, review: Review) -> Result<Verdict, String> {
        let (answer, answered) = oneshot::channel();
        let too_many = |_| "too many questions are waiting".to_owned();
        let questions = match review {
            Review::Token(_) => &self.token_questions,
            Review::Access(..) => &self.questions,
        };
        questions.try_send((review, answer)).map_err(too_many)?;
        match timeout(2 * REVIEW_MAX, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err("the Kubernetes thread has ended".to_owned()),
            Err(_) => Err(format!("no answer within {} s", 2 * REVIEW_MAX.as_secs())),
        }
    }
}

/// The side of the thread that asks.
#[derive(Debug)]
pub(crate) struct Work {
    questions: mpsc::Receiver<Question>,
    token_questions: mpsc::Receiver<Question>,
    front_proxy: watch::Sender<Option<Arc<FrontProxy>>>,
}

/// Returns both sides.
pub(crate) fn channel() -> (Reviews, Work) {
    let (questions, asked) = mpsc::channel(WAITING_MAX);
    let (token_questions, tokens_asked) = mpsc::channel(TOKENS_WAITING_MAX);
    let (sender, front_proxy) = watch::channel(None);
    let work = Work { questions: asked, token_questions: tokens_asked, front_proxy: sender };
    (Reviews { questions, token_questions, front_proxy }, work)
}

/// Answers questions until no more can come.
pub(crate) async fn run(api: Rc<Api>, work: Work) {
    let Work { questions, token_questions, front_proxy } = work;
    spawn_local(follow(Rc::clone(&api), front_proxy));
    spawn_local(answer_all(Rc::clone(&api), token_questions, TOKENS_ASKED_MAX));
    answer_all(api, questions, ASKED_MAX).await;
}

/// Answers the questions of a queue.
async fn answer_all(api: Rc<Api>, mut questions: mpsc::Receiver<Question>, asked_max: usize) {
    let free = Arc::new(Semaphore::new(asked_max));
    while let Some((review, answer)) = questions.recv().await {
        // It is never closed.
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        // The client has left, or its time is over.
        if answer.is_closed() {
            continue;
        }
        let api = Rc::clone(&api);
        spawn_local(async move {
            let verdict = ask(&api, &review).await.map_err(|failure| failure.to_string());
            // The client may have left.
            let _ = answer.send(verdict);
            drop(permit);
        });
    }
}

async fn ask(api: &Api, review: &Review) -> Result<Verdict, Failure> {
    let object = review.object();
    let request = api::with_json(Method::POST, review.path(), "application/json", &object)?;
    Ok(review.verdict(&api.json(request, REVIEW_MAX).await?))
}

/// Reads the ConfigMap again and again: its authorities are rotated. If it cannot be read, what was read last
/// counts for [`READ_KEPT`], unless it does not exist any more.
async fn follow(api: Rc<Api>, front_proxy: watch::Sender<Option<Arc<FrontProxy>>>) {
    let mut reported: Option<String> = None;
    let mut last_read = now();
    while !front_proxy.is_closed() {
        let (read, is_gone) = match read(&api).await {
            Ok(config_map) => (FrontProxy::read(&config_map), false),
            Err(failure) => (Err(failure.to_string()), failure.cause == Cause::NotFound),
        };
        let wait = match read {
            Ok(new) => {
                last_read = now();
                if reported.take().is_some() {
                    tracing::info!(
                        "ConfigMap kube-system/extension-apiserver-authentication can be read again"
                    );
                }
                front_proxy.send_if_modified(|before| {
                    let is_changed = before.as_deref() != Some(&new);
                    if is_changed {
                        *before = Some(Arc::new(new));
                    }
                    is_changed
                });
                READ_EVERY
            }
            Err(error) => {
                if reported.as_ref() != Some(&error) {
                    tracing::warn!(
                        %error,
                        "cannot use ConfigMap kube-system/extension-apiserver-authentication; what was read last \
                         counts for at most {} min, and without it, Weir refuses the API server's requests for \
                         external metrics; trying again every {} s; check the \
                         RoleBinding to extension-apiserver-authentication-reader",
                        READ_KEPT.as_secs() / 60,
                        READ_AGAIN.as_secs()
                    );
                    reported = Some(error);
                }
                if is_gone || now().since(last_read) >= READ_KEPT {
                    front_proxy.send_if_modified(|before| before.take().is_some());
                }
                READ_AGAIN
            }
        };
        sleep(wait).await;
    }
}

async fn read(api: &Api) -> Result<serde_json::Value, Failure> {
    api.json(api::get(CONFIG_MAP)?, REVIEW_MAX).await
}
