//! Runs the framing cases of the end-to-end tests, as far as the parser alone decides them: what it
//! refuses and how, where the next request begins, what the body is.

#[path = "../../../e2e/tests/framing/case.rs"]
#[allow(dead_code, unreachable_pub, reason = "the end-to-end runner uses the rest")]
mod case;

use std::path::Path;

use case::{Case, Check, End, Expected, Forwarded};
use wire::http1::{
    ChunkLimits, ChunkedDecoder, FieldRef, HeadLimits, Known, Parsed, RequestBody, RequestHead,
    ResponseHead, parse_request, parse_response,
};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 16_000, target_max_bytes: 8 * 1024, fields_max: 128 };
const BODY_MAX_BYTES: u64 = 64_000;

/// The parser's result for the client's next bytes.
enum Verdict {
    /// A whole request.
    Request(Box<RequestHead>, Vec<u8>),
    /// Refused before any of it could be forwarded.
    Refused(u16),
    /// Refused in the middle of its body.
    BodyRefused(u16),
    /// More bytes are needed.
    Incomplete,
}

#[test]
fn the_parser_decides_as_the_cases_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/cases/framing");
    let cases = case::read_all(&folder).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(cases.len() >= 130, "{} cases", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        if let Err(why) = judge(case) {
            failures.push(format!("{}.case ({}): {why}", case.file, case.name));
        }
    }
    println!("{} cases, {} fail", cases.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn judge(case: &Case) -> Result<(), String> {
    let input: Vec<u8> = case.sends.iter().flat_map(|send| send.bytes.clone()).collect();
    let verdicts = requests(&input);
    let is_final = |answer: &&Expected| !answer.line.starts_with('1') || answer.line == "101";
    let answers: Vec<&Expected> = case.answers.iter().filter(is_final).collect();
    let mut whole = Vec::new();
    for (index, verdict) in verdicts.iter().enumerate() {
        let answer = answers.get(index).map(|answer| answer.line.as_str());
        let last = index + 1 == answers.len() && case.end == End::Close;
        match verdict {
            Verdict::Request(head, body) => {
                let expected = scripted_status(case, index)?;
                if answer != Some(&expected) {
                    return Err(format!(
                        "accepted, {expected} follows, but {answer:?} is expected"
                    ));
                }
                whole.push((head, body));
            }
            Verdict::Refused(status) | Verdict::BodyRefused(status) => {
                if answer != Some(&status.to_string()) || !last {
                    return Err(format!("refused with {status}, but {answer:?} is expected"));
                }
            }
            Verdict::Incomplete => {
                // Only a server's final response can arrive before the body has.
                if answer.is_some() && scripted_status(case, index)? == "200" {
                    return Err(format!("incomplete, but {answer:?} is expected"));
                }
            }
        }
    }
    if verdicts.len() < answers.len() {
        return Err(format!("{} requests for {} answers", verdicts.len(), answers.len()));
    }
    let begun = verdicts.iter().any(|v| !matches!(v, Verdict::Refused(_)));
    match &case.forwarded {
        Forwarded::Nothing if begun => Err("something is forwarded".to_owned()),
        Forwarded::NothingComplete if !whole.is_empty() => Err("a request is whole".to_owned()),
        Forwarded::Requests(expected) if expected.len() != whole.len() => {
            Err(format!("{} requests are whole, not {}", whole.len(), expected.len()))
        }
        Forwarded::Requests(expected) => expected
            .iter()
            .zip(whole)
            .try_for_each(|(expected, (head, body))| compare(expected, head, body)),
        _ => Ok(()),
    }
}

/// Returns every request in `input`, up to one that is refused, truncated, or the last of its
/// connection.
fn requests(mut input: &[u8]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    while !input.is_empty() {
        let mut head = RequestHead::default();
        let verdict = match parse_request(input, &LIMITS, &mut head) {
            Err(error) => Verdict::Refused(error.status()),
            Ok(Parsed::Partial) => Verdict::Incomplete,
            Ok(Parsed::Complete { consumed }) => {
                input = &input[consumed..];
                body(head, &mut input)
            }
        };
        let goes_on = matches!(&verdict, Verdict::Request(head, _)
            if head.keep_alive() && head.upgrade().is_none());
        verdicts.push(verdict);
        if !goes_on {
            break;
        }
    }
    verdicts
}

fn body(head: RequestHead, input: &mut &[u8]) -> Verdict {
    let mut data = Vec::new();
    match head.body() {
        RequestBody::None => {}
        RequestBody::Length(length) if length > BODY_MAX_BYTES => return Verdict::Refused(413),
        RequestBody::Length(length) => {
            let Some((body, rest)) = input.split_at_checked(length as usize) else {
                return Verdict::Incomplete;
            };
            data.extend_from_slice(body);
            *input = rest;
        }
        RequestBody::Chunked => {
            let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
            while !decoder.is_end() {
                if input.is_empty() {
                    return Verdict::Incomplete;
                }
                match decoder.decode(input) {
                    Err(error) => return Verdict::BodyRefused(error.status()),
                    Ok(chunk) => {
                        data.extend_from_slice(&input[chunk.data]);
                        *input = &input[chunk.consumed..];
                    }
                }
                if data.len() as u64 > BODY_MAX_BYTES {
                    return Verdict::BodyRefused(413);
                }
            }
        }
    }
    Verdict::Request(Box::new(head), data)
}

/// Returns what the client receives for the server's response to the `index`-th request.
fn scripted_status(case: &Case, index: usize) -> Result<String, String> {
    let mut heads = Vec::new();
    let mut head = ResponseHead::default();
    for respond in &case.responds {
        let mut input = &respond.bytes[..];
        loop {
            match parse_response(input, &LIMITS, &mut head) {
                Err(error) => heads.push(error.status().to_string()),
                Ok(Parsed::Partial) => heads.push("502".to_owned()),
                Ok(Parsed::Complete { consumed }) if head.is_informational() => {
                    input = &input[consumed..];
                    if input.is_empty() {
                        break;
                    }
                    continue;
                }
                // It must name the requested protocol.
                Ok(Parsed::Complete { .. })
                    if head.status() == 101
                        && head.known(Known::Upgrade) != Some(b"websocket".as_slice()) =>
                {
                    heads.push("502".to_owned());
                }
                Ok(Parsed::Complete { .. }) => heads.push(head.status().to_string()),
            }
            break;
        }
    }
    let status = heads.get(index).cloned().unwrap_or_else(|| "200".to_owned());
    let asked = || case.sends[0].bytes.windows(9).any(|w| w.eq_ignore_ascii_case(b"upgrade: "));
    match status.as_str() {
        "101" if !asked() => Ok("502".to_owned()),
        "" => Err("no status".to_owned()),
        _ => Ok(status),
    }
}

fn compare(expected: &Expected, head: &RequestHead, body: &[u8]) -> Result<(), String> {
    let query = head.query().map(|query| format!("?{query}")).unwrap_or_default();
    let line = format!("{} {}{query} HTTP/1.1", head.method(), head.path());
    if line != expected.line {
        return Err(format!("the request line is {line}, not {}", expected.line));
    }
    let forwarded = |name: &str| -> Vec<String> {
        let is = |field: &FieldRef<'_>| {
            !field.hop_by_hop && field.name.eq_ignore_ascii_case(name.as_bytes())
        };
        head.fields().filter(is).map(|f| String::from_utf8_lossy(f.value).into_owned()).collect()
    };
    // What Weir rewrites on the way is not checked here.
    let is_ours = |name: &str| {
        let known = Known::of(name.as_bytes());
        let written = matches!(
            known,
            Known::Connection
                | Known::Upgrade
                | Known::TransferEncoding
                | Known::ContentLength
                | Known::XRequestId
                | Known::Traceparent
                | Known::Tracestate
        );
        written || known.is_forwarding()
    };
    for check in &expected.checks {
        let holds = match check {
            Check::Body(expected) => body == expected,
            Check::Once(name, value) if name == "Host" => {
                value.starts_with('{') || head.authority() == value
            }
            Check::Has(name, _) | Check::Once(name, _) | Check::No(name) if is_ours(name) => true,
            Check::Has(name, value) => {
                let values = forwarded(name);
                value.as_ref().map_or(!values.is_empty(), |value| values.contains(value))
            }
            Check::Once(name, value) => forwarded(name) == [value.clone()],
            Check::No(name) => forwarded(name).is_empty(),
            Check::Not(..) | Check::Trailer(..) | Check::NoTrailer(..) | Check::Tunnel(..) => true,
        };
        if !holds {
            return Err(format!("does not hold: {check:?}"));
        }
    }
    Ok(())
}
