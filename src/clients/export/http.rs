// SPDX-License-Identifier: GPL-2.0-only
//! The part of HTTP/1.1 that a scraper needs: one GET or HEAD request, one response, then the
//! connection ends. Pure.

use super::Format;
use anyhow::Result;
use httparse::{EMPTY_HEADER, Header, Request, Status};

/// Longest request head in bytes; that of Prometheus has 300.
pub const HEAD_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;
const TEXT: &str = "text/plain; charset=utf-8";

const INDEX: &str = "<!DOCTYPE html>
<html><head><title>scx_roost export</title></head>
<body><h1>scx_roost export</h1><p><a href=\"/metrics\">Metrics</a></p></body></html>
";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Page {
    Index,
    Metrics(Format),
    /// No such page; the status says why.
    None(&'static str),
}

/// A parsed request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    pub page: Page,
    /// Send only the head of the response.
    pub head_only: bool,
}

/// Parses a request. None: it is not complete yet.
pub fn understand(bytes: &[u8]) -> Option<Asked> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    let page = match request.parse(bytes) {
        Ok(Status::Complete(_)) => page(&request),
        Ok(Status::Partial) if bytes.len() < HEAD_MAX => return None,
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            Page::None("431 Request Header Fields Too Large")
        }
        Err(_) => Page::None("400 Bad Request"),
    };
    Some(Asked {
        page,
        head_only: request.method == Some("HEAD"),
    })
}

fn page(request: &Request) -> Page {
    if !matches!(request.method, Some("GET" | "HEAD")) {
        return Page::None("405 Method Not Allowed");
    }
    let target = request.path.unwrap_or_default();
    match target.split('?').next() {
        Some("/") => Page::Index,
        Some("/metrics") => Page::Metrics(wanted(request.headers)),
        _ => Page::None("404 Not Found"),
    }
}

/// OpenMetrics if the client names it in Accept with a quality no lower than text/plain's, as
/// Prometheus does. Otherwise the classic format.
fn wanted(headers: &[Header]) -> Format {
    let open = quality(headers, "application/openmetrics-text");
    if open > 0.0 && open >= quality(headers, "text/plain") {
        Format::OpenMetrics
    } else {
        Format::Classic
    }
}

/// The highest quality that Accept gives to `wanted`.
fn quality(headers: &[Header], wanted: &str) -> f32 {
    let accept = |h: &&Header| h.name.eq_ignore_ascii_case("accept");
    let of = headers.iter().filter(accept);
    let texts = of.filter_map(|h| std::str::from_utf8(h.value).ok());
    let ranges = texts.flat_map(|t| t.split(',')).map(range);
    let qualities = ranges.filter(|(name, _)| *name == wanted);
    qualities.map(|(_, q)| q).fold(0.0, f32::max)
}

/// A media range and its quality. A version that we do not write has quality 0.
fn range(text: &str) -> (&str, f32) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let mut q = 1.0;
    for part in parts {
        match part.split_once('=') {
            Some(("q", value)) => q = value.parse().unwrap_or(0.0),
            Some(("version", v)) if !["1.0.0", "0.0.4"].contains(&v) => return (name, 0.0),
            _ => (),
        }
    }
    (name, q)
}

/// Sent when overloaded.
pub const UNAVAILABLE: Asked = Asked {
    page: Page::None("503 Service Unavailable"),
    head_only: false,
};

/// The bytes of the response. `metrics` is called only if the page needs it.
pub fn answer(asked: Asked, metrics: impl FnOnce(Format) -> Result<String>) -> Vec<u8> {
    let (status, kind, body) = match asked.page {
        Page::Index => ("200 OK", "text/html; charset=utf-8", INDEX.to_string()),
        Page::Metrics(format) => match metrics(format) {
            Ok(text) => ("200 OK", format.content_type(), text),
            Err(e) => ("503 Service Unavailable", TEXT, format!("{e:#}\n")),
        },
        Page::None(status) => (status, TEXT, format!("{status}\n")),
    };
    let allow = if status.starts_with("405") {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    )
    .into_bytes();
    if !asked.head_only {
        bytes.extend(body.into_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str) -> Page {
        understand(request.as_bytes()).unwrap().page
    }

    fn accepting(accept: &str) -> Page {
        asked(&format!(
            "GET /metrics HTTP/1.1\r\naccept: {accept}\r\n\r\n"
        ))
    }

    #[test]
    fn the_format_is_the_one_that_is_liked_best() {
        let open = Page::Metrics(Format::OpenMetrics);
        let classic = Page::Metrics(Format::Classic);
        for (accept, expected) in [
            // Prometheus 2 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                open,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2",
                open,
            ),
            ("application/openmetrics-text", open),
            (
                "text/plain;version=0.0.4, application/openmetrics-text; q=0.3",
                classic,
            ),
            ("application/openmetrics-text; q=0", classic),
            ("application/openmetrics-text; version=0.0.1", classic),
            ("*/*", classic),
            ("", classic),
        ] {
            assert_eq!(accepting(accept), expected, "{accept}");
        }
        assert_eq!(asked("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), classic);
    }

    #[test]
    fn what_is_not_served_has_its_status() {
        for (request, status) in [
            ("GET /x HTTP/1.1\r\n\r\n", "404"),
            ("GET /../metrics HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
            ("GET /metrics HTTP/2.0\r\n\r\n", "400"),
            ("\u{16}\u{3}\u{1}\u{2}", "400"),
        ] {
            let Page::None(answer) = asked(request) else {
                panic!("{request} was served")
            };
            assert!(answer.starts_with(status), "{request}: {answer}");
        }
        let many = "x: y\r\n".repeat(HEADERS_MAX + 1);
        let Page::None(answer) = asked(&format!("GET / HTTP/1.1\r\n{many}\r\n")) else {
            panic!("so many headers were served")
        };
        assert!(answer.starts_with("431"), "{answer}");
    }

    #[test]
    fn a_head_may_come_in_pieces_and_has_an_end() {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for len in 0..request.len() {
            assert_eq!(understand(&request[..len]), None, "{len}");
        }
        assert_eq!(understand(request).unwrap().page, Page::Index);
        let mut endless = b"GET / HTTP/1.1\r\nx: ".to_vec();
        endless.resize(HEAD_MAX, b'y');
        let Page::None(answer) = understand(&endless).unwrap().page else {
            panic!("a head without end was served")
        };
        assert!(answer.starts_with("431"), "{answer}");
    }

    #[test]
    fn head_has_the_length_and_no_body() {
        let text = |request: &str| {
            let asked = understand(request.as_bytes()).unwrap();
            String::from_utf8(answer(asked, |_| Ok("x 1\n".into()))).unwrap()
        };
        let whole = text("GET /metrics HTTP/1.1\r\n\r\n");
        assert!(
            whole.ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nx 1\n"),
            "{whole}"
        );
        let head = text("HEAD /metrics HTTP/1.1\r\n\r\n");
        assert_eq!(whole, head + "x 1\n");
        assert!(text("PUT / HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
    }
}
