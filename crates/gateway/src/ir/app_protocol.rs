//! Application protocols of ports.

/// The application protocol of a Service's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppProtocol {
    /// HTTP/1.1 without TLS (`http`).
    Http,
    /// HTTP over TLS (`https`).
    Https,
    /// HTTP/2 without TLS (`kubernetes.io/h2c`).
    H2c,
    /// gRPC (`grpc`).
    Grpc,
    /// WebSocket without TLS (`kubernetes.io/ws`).
    WebSocket,
    /// WebSocket over TLS (`kubernetes.io/wss`).
    WebSocketTls,
    /// Any other protocol.
    Other(String),
}

impl AppProtocol {
    /// Reads an `appProtocol`. Names without a domain ignore case.
    pub fn read(text: &str) -> AppProtocol {
        match text.to_ascii_lowercase().as_str() {
            "http" => AppProtocol::Http,
            "https" => AppProtocol::Https,
            "kubernetes.io/h2c" | "h2c" => AppProtocol::H2c,
            "grpc" => AppProtocol::Grpc,
            "kubernetes.io/ws" | "ws" => AppProtocol::WebSocket,
            "kubernetes.io/wss" | "wss" => AppProtocol::WebSocketTls,
            _ => AppProtocol::Other(text.to_owned()),
        }
    }

    /// Returns whether its connections carry HTTP/2.
    pub fn is_http2(&self) -> bool {
        match self {
            AppProtocol::H2c | AppProtocol::Grpc => true,
            AppProtocol::Http
            | AppProtocol::Https
            | AppProtocol::WebSocket
            | AppProtocol::WebSocketTls
            | AppProtocol::Other(_) => false,
        }
    }
}
