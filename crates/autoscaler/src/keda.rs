//! KEDA's external scaler: the messages of `externalscaler.proto`, and the answers.
//!
//! The numbers of the fields are those of KEDA 2.21. `StreamMetricSpec` is not offered: the target never changes, and
//! KEDA then asks for it with `GetMetricSpec`.

use std::collections::HashMap;

use crate::grpc::{Code, Status, framed};
use crate::service::{KubernetesPort, METRIC, Number, Scaled};

/// The path of the service's methods.
const PATH: &str = "/externalscaler.ExternalScaler/";

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Whether there should be any server.
    IsActive,
    /// The same, whenever it changes.
    StreamIsActive,
    /// The metric and its target.
    GetMetricSpec,
    /// The number.
    GetMetrics,
}

impl Method {
    /// Reads the path of a request.
    ///
    /// # Errors
    /// There is no such method.
    pub fn of(path: &str) -> Result<Method, Status> {
        match path.strip_prefix(PATH) {
            Some("IsActive") => Ok(Method::IsActive),
            Some("StreamIsActive") => Ok(Method::StreamIsActive),
            Some("GetMetricSpec") => Ok(Method::GetMetricSpec),
            Some("GetMetrics") => Ok(Method::GetMetrics),
            _ => Err(Status::new(
                Code::Unimplemented,
                "Weir has IsActive, StreamIsActive, GetMetricSpec and GetMetrics of externalscaler.ExternalScaler",
            )),
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScaledObjectRef {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(map = "string, string", tag = "3")]
    scaler_metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct IsActiveResponse {
    #[prost(bool, tag = "1")]
    result: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GetMetricSpecResponse {
    #[prost(message, repeated, tag = "1")]
    metric_specs: Vec<MetricSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MetricSpec {
    #[prost(string, tag = "1")]
    metric_name: String,
    /// For older versions of KEDA.
    #[prost(int64, tag = "2")]
    target_size: i64,
    #[prost(double, tag = "3")]
    target_size_float: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GetMetricsRequest {
    #[prost(message, optional, tag = "1")]
    scaled_object_ref: Option<ScaledObjectRef>,
    #[prost(string, tag = "2")]
    metric_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GetMetricsResponse {
    #[prost(message, repeated, tag = "1")]
    metric_values: Vec<MetricValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MetricValue {
    #[prost(string, tag = "1")]
    name: String,
    /// For older versions of KEDA.
    #[prost(int64, tag = "2")]
    value: i64,
    #[prost(double, tag = "3")]
    value_float: f64,
}

/// Which service a ScaledObject asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name; of a Service in Kubernetes if there is a namespace.
    service: String,
    namespace: Option<String>,
    port: Option<String>,
}

impl Target {
    fn of(scaled_object: ScaledObjectRef) -> Result<Target, Status> {
        let ScaledObjectRef { namespace: own, scaler_metadata: mut metadata, .. } = scaled_object;
        let mut take = |key: &str| metadata.remove(key).filter(|value| !value.is_empty());
        let Some(service) = take("service") else {
            let message = "the metadata of the trigger need `service`, the name of a service";
            return Err(Status::new(Code::InvalidArgument, message));
        };
        let (namespace, port) = (take("namespace"), take("port"));
        // A Service is looked for in the namespace of the ScaledObject, as Kubernetes does.
        let namespace = namespace.or_else(|| port.is_some().then_some(own));
        Ok(Target { service, namespace, port })
    }

    fn is(&self, scaled: &Scaled) -> bool {
        let Some(namespace) = &self.namespace else { return *scaled.name == *self.service };
        scaled.port.as_ref().is_some_and(|own: &KubernetesPort| {
            *own.namespace == **namespace
                && *own.service == *self.service
                && self.port.as_ref().is_none_or(|port| *own.port == **port)
        })
    }

    fn shown(&self) -> String {
        let Target { service, namespace, port } = self;
        let namespace = namespace.as_ref().map(|it| format!("{it}/")).unwrap_or_default();
        let port = port.as_ref().map(|it| format!(":{it}")).unwrap_or_default();
        format!("{namespace}{service}{port}")
    }

    /// Returns how many servers it should have. If there are several services, such as one for each port of a Service,
    /// their numbers are added.
    ///
    /// # Errors
    /// There is no such service, or no number.
    fn number(&self, services: &[Scaled]) -> Result<u32, Status> {
        let mut found = services.iter().filter(|scaled| self.is(scaled)).peekable();
        if found.peek().is_none() {
            let message = format!(
                "there is no service {} with `scaling`; the trigger's metadata name it by `service`, and a Service in \
                 Kubernetes by `service`, `namespace` and `port`",
                self.shown()
            );
            return Err(Status::new(Code::NotFound, message));
        }
        let mut sum = 0_u32;
        for scaled in found {
            sum = sum.saturating_add(match scaled.number {
                Number::Known(number) => number,
                Number::Unmeasured => {
                    let message = format!("the load of {} has not been measured yet", scaled.name);
                    return Err(Status::new(Code::Unavailable, message));
                }
                Number::Unlimited => {
                    let message = format!(
                        "{} has neither a concurrency limit nor `scaling.in_flight_target`, so there is no number",
                        scaled.name
                    );
                    return Err(Status::new(Code::FailedPrecondition, message));
                }
            });
        }
        Ok(sum)
    }
}

/// What to answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// With this body, and status 0.
    Once(Vec<u8>),
    /// With what [`activity`] says of this target, whenever it changes.
    Stream(Target),
}

/// Answers a request.
///
/// # Errors
/// The message is not what the method takes, or there is no number.
pub fn answer(method: Method, message: &[u8], services: &[Scaled]) -> Result<Answer, Status> {
    let target = match method {
        Method::GetMetrics => {
            let GetMetricsRequest { scaled_object_ref, metric_name } = decoded(message)?;
            if metric_name != METRIC {
                let message = format!("the only metric is {METRIC}");
                return Err(Status::new(Code::NotFound, message));
            }
            Target::of(scaled_object_ref.unwrap_or_default())?
        }
        Method::IsActive | Method::StreamIsActive | Method::GetMetricSpec => {
            Target::of(decoded(message)?)?
        }
    };
    Ok(Answer::Once(match method {
        Method::StreamIsActive => return Ok(Answer::Stream(target)),
        Method::IsActive => is_active(target.number(services)? > 0),
        // Whether there is a number now or not: KEDA makes the HorizontalPodAutoscaler of it.
        Method::GetMetricSpec => framed(&GetMetricSpecResponse {
            metric_specs: vec![MetricSpec {
                metric_name: METRIC.to_owned(),
                target_size: 1,
                target_size_float: 1.0,
            }],
        }),
        Method::GetMetrics => {
            let number = target.number(services)?;
            framed(&GetMetricsResponse {
                metric_values: vec![MetricValue {
                    name: METRIC.to_owned(),
                    value: i64::from(number),
                    value_float: f64::from(number),
                }],
            })
        }
    }))
}

/// Returns whether there should be any server; `None`: it is not known yet.
///
/// # Errors
/// It will not be known while the configuration is what it is.
pub fn activity(target: &Target, services: &[Scaled]) -> Result<Option<bool>, Status> {
    match target.number(services) {
        Ok(number) => Ok(Some(number > 0)),
        Err(status) if status.code == Code::Unavailable => Ok(None),
        Err(status) => Err(status),
    }
}

/// Returns the body of an answer to `IsActive`, and one message of that to `StreamIsActive`.
pub fn is_active(result: bool) -> Vec<u8> {
    framed(&IsActiveResponse { result })
}

fn decoded<T: prost::Message + Default>(message: &[u8]) -> Result<T, Status> {
    T::decode(message).map_err(|error| {
        Status::new(Code::InvalidArgument, format!("the message cannot be decoded: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::grpc;
    use crate::service::testing::scaled;

    fn services() -> Vec<Scaled> {
        vec![
            scaled("listings", Number::Known(13)),
            scaled("idle", Number::Known(0)),
            scaled("new", Number::Unmeasured),
            scaled("unlimited", Number::Unlimited),
            scaled("shop/web:80", Number::Known(2)),
            scaled("shop/web:80/grpc", Number::Known(3)),
            scaled("shop/web:81", Number::Known(4)),
            scaled("other/web:80", Number::Known(50)),
        ]
    }

    fn of(metadata: &[(&str, &str)]) -> ScaledObjectRef {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        ScaledObjectRef {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            scaler_metadata: metadata.iter().map(own).collect(),
        }
    }

    #[test]
    fn a_number_is_found_by_the_metadata() {
        for (metadata, expected) in [
            (&[("service", "listings")][..], Ok(13)),
            (&[("service", "listings"), ("scalerAddress", "weir:9")], Ok(13)),
            (&[("service", "idle")], Ok(0)),
            (&[("service", "shop/web:80")], Ok(2)),
            (&[("service", "shop/web:80/grpc")], Ok(3)),
            (&[("service", "web"), ("namespace", "shop"), ("port", "81")], Ok(4)),
            (&[("service", "web"), ("port", "81")], Ok(4)),
            (&[("service", "web"), ("port", "80")], Ok(5)),
            (&[("service", "web"), ("namespace", "other"), ("port", "80")], Ok(50)),
            (&[("service", "web"), ("namespace", "shop")], Ok(9)),
            (&[], Err(Code::InvalidArgument)),
            (&[("service", "")], Err(Code::InvalidArgument)),
            (&[("service", "web")], Err(Code::NotFound)),
            (&[("service", "listings"), ("namespace", "shop")], Err(Code::NotFound)),
            (&[("service", "web"), ("port", "82")], Err(Code::NotFound)),
            (&[("service", "new")], Err(Code::Unavailable)),
            (&[("service", "unlimited")], Err(Code::FailedPrecondition)),
        ] {
            let number = Target::of(of(metadata)).and_then(|one| one.number(&services()));
            assert_eq!(number.map_err(|status| status.code), expected, "{metadata:?}");
        }
    }

    #[test]
    fn each_method_answers() {
        let decoded = |method, message: Vec<u8>| match answer(method, &message, &services()) {
            Ok(Answer::Once(body)) => grpc::message(&body).unwrap().to_vec(),
            other => panic!("{other:?}"),
        };
        let listings = of(&[("service", "listings")]);
        let asked = listings.encode_to_vec();
        let active = |of: &ScaledObjectRef| {
            let body = decoded(Method::IsActive, of.encode_to_vec());
            IsActiveResponse::decode(&*body).unwrap().result
        };
        assert!(active(&listings));
        assert!(!active(&of(&[("service", "idle")])));
        let spec = decoded(Method::GetMetricSpec, asked.clone());
        let spec = GetMetricSpecResponse::decode(&*spec).unwrap().metric_specs;
        assert_eq!((&*spec[0].metric_name, spec[0].target_size), (METRIC, 1));
        let request = |metric: &str| GetMetricsRequest {
            scaled_object_ref: Some(listings.clone()),
            metric_name: metric.to_owned(),
        };
        let values = decoded(Method::GetMetrics, request(METRIC).encode_to_vec());
        let values = GetMetricsResponse::decode(&*values).unwrap().metric_values;
        assert_eq!(values[0].value, 13);
        assert!((values[0].value_float - 13.0).abs() < f64::EPSILON);
        let other = answer(Method::GetMetrics, &request("other").encode_to_vec(), &services());
        assert_eq!(other.map_err(|status| status.code), Err(Code::NotFound));
        for method in [Method::IsActive, Method::GetMetrics, Method::StreamIsActive] {
            let invalid = answer(method, b"\xff\xff", &services());
            assert_eq!(invalid.map_err(|status| status.code), Err(Code::InvalidArgument));
        }
    }

    #[test]
    fn a_stream_waits_for_a_number_and_ends_without_a_service() {
        for (service, expected) in [
            ("listings", Ok(Some(true))),
            ("idle", Ok(Some(false))),
            ("new", Ok(None)),
            ("unlimited", Err(Code::FailedPrecondition)),
            ("gone", Err(Code::NotFound)),
        ] {
            let message = of(&[("service", service)]).encode_to_vec();
            let answer = answer(Method::StreamIsActive, &message, &services()).unwrap();
            let Answer::Stream(target) = answer else { panic!("{answer:?}") };
            let active = activity(&target, &services());
            assert_eq!(active.map_err(|status| status.code), expected, "{service}");
        }
    }

    #[test]
    fn other_methods_are_unimplemented() {
        for path in ["/", "", "/externalscaler.ExternalScaler/StreamMetricSpec", "/x/IsActive"] {
            assert_eq!(Method::of(path).map_err(|it| it.code), Err(Code::Unimplemented));
        }
        assert_eq!(Method::of("/externalscaler.ExternalScaler/IsActive"), Ok(Method::IsActive));
    }
}
