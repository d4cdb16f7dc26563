//! The client of the API server, and the credentials of its requests. kube runs a program for them if the kubeconfig names
//! one (an exec plugin): at the start, and again when a token is about to expire. Weir asks kube for them before a request
//! rather than in it, so that [`crate::connecting`] bounds how many of these programs run.

use std::error::Error;
use std::future::{Future, Ready, poll_fn, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use tower_layer::Layer as _;
use tower_service::Service;

use crate::failure::Failure;

/// A field of a request; none for certificates and for a server that needs no credentials.
pub(crate) type Field = Option<HeaderValue>;

type Asked = Pin<Box<dyn Future<Output = Result<Field, Failure>>>>;

/// A client, and where the credentials of its requests come from.
pub(crate) struct Connected {
    pub(crate) client: Client,
    credentials: Option<Box<dyn Fn() -> Asked + Send>>,
}

impl Connected {
    /// Creates a client. Blocks while the plugin runs.
    pub(crate) fn new(mut config: Config) -> Result<Connected, Failure> {
        let layer = config.auth_layer().map_err(|error| Failure::of_error(&error))?;
        let credentials = layer.map(|layer| {
            // The client does not ask for credentials once more. Certificates are part of it, so they stay.
            let auth = &mut config.auth_info;
            (auth.exec, auth.auth_provider) = (None, None);
            (auth.token, auth.token_file) = (None, None);
            (auth.username, auth.password) = (None, None);
            let service = layer.layer(Echo);
            let ask = move || -> Asked { Box::pin(field(service.clone())) };
            Box::new(ask) as Box<dyn Fn() -> Asked + Send>
        });
        let client = Client::try_from(config).map_err(|error| Failure::of_error(&error))?;
        Ok(Connected { client, credentials })
    }

    /// Asks for the credentials of a request. `None`: it needs no field. May run the plugin.
    pub(crate) fn ask(&self) -> Option<Asked> {
        self.credentials.as_ref().map(|ask| ask())
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

/// Returns the field that kube adds to a request.
async fn field<S>(mut service: S) -> Result<Field, Failure>
where
    S: Service<Request<Body>, Response = Response<()>, Error = BoxError>,
{
    let answer = async {
        poll_fn(|context| service.poll_ready(context)).await?;
        service.call(Request::new(Body::empty())).await
    };
    let answer = answer.await.map_err(|error| Failure::of_error(&*error))?;
    Ok(answer.headers().get(AUTHORIZATION).cloned())
}

/// Answers with the field that the request has.
#[derive(Clone)]
struct Echo;

impl Service<Request<Body>> for Echo {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Ready<Result<Response<()>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let mut response = Response::new(());
        if let Some(value) = request.headers_mut().remove(AUTHORIZATION) {
            response.headers_mut().insert(AUTHORIZATION, value);
        }
        ready(Ok(response))
    }
}
