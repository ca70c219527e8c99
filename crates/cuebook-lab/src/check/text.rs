//! How the files of a prompt are stored: byte-order marks ([CB311](crate::Code::ByteOrderMark)) and Windows line ends
//! ([CB312](crate::Code::CarriageReturns)). Both are read as if they were not there.

use crate::error::{Code, Diagnostic};
use crate::prepared::Prepared;

/// Oddities of the files themselves.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let program = prepared.outline();
    for unit in program.units().iter() {
        let source = unit.source();
        if source.has_byte_order_mark() {
            let diagnostic = Diagnostic::new(Code::ByteOrderMark, "the file begins with a byte-order mark");
            findings.push(diagnostic.file(source.name()).hint("save it as UTF-8 without a byte-order mark"));
        }
        if source.has_carriage_returns() {
            let diagnostic = Diagnostic::new(Code::CarriageReturns, "the file has Windows line endings");
            let hint = "Cuebook renders them as plain newlines; `git config core.autocrlf input` keeps them out of \
                 the repository";
            findings.push(diagnostic.file(source.name()).hint(hint));
        }
    }
    findings
}
