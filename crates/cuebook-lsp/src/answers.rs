//! What the service says, in the words of the protocol.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cuebook::error::Diagnostic;
use cuebook::{Code, Severity, Variables};
use cuebook_lab::service::{
    Action, ActionKind, Completion, CompletionKind, Edit, LensKind, Location, Service, Symbol, SymbolKind,
    TokenKind,
};
use serde_json::{Value as Json, json};

use crate::position::{Positions, offset, path_of, uri_of};

/// The kinds of words, in the order of [`TokenKind`].
const LEGEND: [&str; 8] =
    ["keyword", "variable", "property", "function", "string", "number", "comment", "type"];

/// What the server can do.
pub(crate) fn capabilities() -> Json {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": {"openClose": true, "change": 2, "save": true},
            "hoverProvider": true,
            "definitionProvider": true,
            "referencesProvider": true,
            "documentHighlightProvider": true,
            "renameProvider": {"prepareProvider": true},
            "documentSymbolProvider": true,
            "workspaceSymbolProvider": true,
            "foldingRangeProvider": true,
            "documentFormattingProvider": true,
            "inlayHintProvider": true,
            "codeLensProvider": {"resolveProvider": false},
            "signatureHelpProvider": {"triggerCharacters": ["(", ","]},
            "semanticTokensProvider": {"legend": {"tokenTypes": LEGEND, "tokenModifiers": []}, "full": true},
            "completionProvider": {"triggerCharacters": ["{", "|", ".", "\"", "'", "/", "$", ":", "<", " "]},
            "codeActionProvider": {"codeActionKinds": ["quickfix", "refactor.extract"]},
            "documentLinkProvider": {},
            "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
        },
        "serverInfo": {"name": "cuebook", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Answers to what an editor asks.
pub(crate) struct Answers<'s> {
    pub(crate) service: &'s Service,
    /// Whether the editor can create and move files.
    pub(crate) files: bool,
    /// The positions of files that the answer names, each file once.
    known: RefCell<HashMap<PathBuf, Rc<Positions>>>,
}

impl<'s> Answers<'s> {
    pub(crate) fn new(service: &'s Service, files: bool) -> Answers<'s> {
        Answers { service, files, known: RefCell::default() }
    }

    fn positions(&self, path: &Path) -> Rc<Positions> {
        let mut known = self.known.borrow_mut();
        if let Some(positions) = known.get(path) {
            return positions.clone();
        }
        let positions = Rc::new(Positions::of(self.service.text(path).unwrap_or_default()));
        known.insert(path.to_owned(), positions.clone());
        positions
    }

    /// The prompts that `workspace/symbol` asks for.
    pub(crate) fn found(&self, params: &Json) -> Vec<Json> {
        let query = params["query"].as_str().unwrap_or_default();
        let symbol = |one: Symbol| {
            json!({
                "name": one.name,
                "kind": kind_of(one.kind),
                "containerName": one.detail,
                "location": self.location(&one.location),
            })
        };
        self.service.workspace_symbols(query).into_iter().map(symbol).collect()
    }

    /// The answer to a request: `None` if there is no such request, and a message if it cannot be done.
    pub(crate) fn answer(&self, method: &str, params: &Json) -> Option<Result<Json, String>> {
        if method == "cuebook/page" {
            let wanted = params["uri"].as_str().unwrap_or_default();
            return Some(page(wanted).map(Json::from).ok_or_else(|| format!("there is no page {wanted}")));
        }
        let document = &params["textDocument"]["uri"];
        let is_ours = method.starts_with("textDocument/") || method == "cuebook/preview";
        let Some(path) = document.as_str().and_then(path_of) else {
            // A text that has no file, such as a new one.
            return (is_ours && document.is_string()).then_some(Ok(Json::Null));
        };
        let text = self.service.text(&path).unwrap_or_default();
        let at = offset(&text, &params["position"]).unwrap_or(text.len());
        Some(Ok(match method {
            "textDocument/hover" => self
                .service
                .hover(&path, at)
                .map_or(Json::Null, |text| json!({"contents": {"kind": "markdown", "value": text}})),
            "textDocument/definition" => {
                self.service.definition(&path, at).map_or(Json::Null, |found| self.location(&found))
            }
            "textDocument/references" => {
                self.service.references(&path, at).iter().map(|found| self.location(found)).collect()
            }
            "textDocument/documentHighlight" => {
                let (places, positions) = (self.service.highlights(&path, at), self.positions(&path));
                places.iter().map(|found| json!({"range": positions.range(&found.range())})).collect()
            }
            "textDocument/prepareRename" => self.prepare_rename(&path, at),
            "textDocument/rename" => {
                let to = params["newName"].as_str().unwrap_or_default();
                match self.service.rename(&path, at, to) {
                    Ok(renaming) if renaming.moves.is_empty() || self.files => {
                        self.edit(&renaming.edits, &[], &renaming.moves)
                    }
                    Ok(_) => {
                        let message =
                            "this editor cannot move files: rename the file by hand, and run `cuebook check`";
                        return Some(Err(message.to_owned()));
                    }
                    Err(error) => {
                        let reported = error.diagnostic();
                        let hint = reported.hint.as_deref().map_or(String::new(), |hint| format!(": {hint}"));
                        return Some(Err(format!("{}{hint}", reported.message)));
                    }
                }
            }
            "textDocument/completion" => {
                self.service.complete(&path, at).into_iter().map(completion).collect()
            }
            "textDocument/signatureHelp" => self.signature(&path, at),
            "textDocument/documentSymbol" => self.symbols(&path),
            "textDocument/documentLink" => self.links(&path),
            "textDocument/foldingRange" => self.folds(&path),
            "textDocument/semanticTokens/full" => self.tokens(&path),
            "textDocument/inlayHint" => self.hints(&path, &text, &params["range"]),
            "textDocument/codeLens" => self.lenses(&path),
            "textDocument/formatting" => {
                let positions = self.positions(&path);
                let edits = self.service.format(&path).into_iter();
                edits.map(|edit| json!({"range": positions.range(&edit.location.range()), "newText": edit.text})).collect()
            }
            "textDocument/codeAction" => self.actions(&path, &text, &params["range"]),
            "cuebook/preview" => return Some(self.preview(&path, &params["variables"])),
            _ => return None,
        }))
    }

    /// The findings of a file.
    pub(crate) fn findings(&self, path: &Path) -> Vec<Json> {
        let findings = self.service.findings(path);
        if findings.is_empty() {
            return Vec::new();
        }
        let positions = self.positions(path);
        findings.iter().map(|finding| self.shown(finding, &positions)).collect()
    }

    fn shown(&self, finding: &Diagnostic, positions: &Positions) -> Json {
        let range = finding.place.as_ref().map_or(0..0, |place| self.service.location(place).range());
        let severity = match finding.severity {
            Severity::Error => 1,
            Severity::Warning => 2,
            Severity::Note => 3,
        };
        let message = match &finding.hint {
            Some(hint) => format!("{}\nhelp: {hint}", finding.message),
            None => finding.message.clone(),
        };
        let related = finding.related.iter().map(
            |(place, label)| json!({"location": self.location(&self.service.location(place)), "message": label}),
        );
        json!({
            "range": positions.range(&range),
            "severity": severity,
            "code": finding.code.as_str(),
            "codeDescription": {"href": page_of(finding)},
            "source": "cuebook",
            "message": message,
            "relatedInformation": related.collect::<Vec<Json>>(),
        })
    }

    fn location(&self, location: &Location) -> Json {
        json!({"uri": uri_of(&location.path), "range": self.positions(&location.path).range(&location.range())})
    }

    fn prepare_rename(&self, path: &Path, at: usize) -> Json {
        let here = self.service.highlights(path, at).into_iter();
        let mut here = here.filter(|found| found.start <= at && at <= found.end);
        here.next().map_or(Json::Null, |found| self.positions(path).range(&found.range()))
    }

    fn signature(&self, path: &Path, at: usize) -> Json {
        let Some(found) = self.service.signature(path, at) else { return Json::Null };
        let parameters: Vec<Json> = found.parameters.iter().map(|label| json!({"label": label})).collect();
        let signature = json!({
            "label": found.label,
            "documentation": {"kind": "markdown", "value": found.documentation},
            "parameters": parameters,
        });
        json!({"signatures": [signature], "activeSignature": 0, "activeParameter": found.active})
    }

    fn symbols(&self, path: &Path) -> Json {
        let positions = self.positions(path);
        let symbol = |one: Symbol| {
            let range = positions.range(&one.location.range());
            json!({
                "name": one.name,
                "detail": one.detail,
                "kind": kind_of(one.kind),
                "range": range,
                "selectionRange": range,
            })
        };
        // The protocol forbids empty names.
        self.service.symbols(path).into_iter().filter(|one| !one.name.is_empty()).map(symbol).collect()
    }

    /// What a file includes or names leads to its file.
    fn links(&self, path: &Path) -> Json {
        let positions = self.positions(path);
        let link = |(at, target): (Location, PathBuf)| json!({"range": positions.range(&at.range()), "target": uri_of(&target)});
        self.service.links(path).into_iter().map(link).collect()
    }

    fn folds(&self, path: &Path) -> Json {
        let positions = self.positions(path);
        let fold = |fold: cuebook_lab::service::Fold| {
            let range = positions.range(&fold.range);
            let mut folded = json!({"startLine": range["start"]["line"], "endLine": range["end"]["line"]});
            // The last line stays where the fold ends at its beginning.
            if range["end"]["character"] == 0 && range["end"]["line"].as_u64() > Some(0) {
                folded["endLine"] = json!(range["end"]["line"].as_u64().unwrap_or_default() - 1);
            }
            if fold.is_comment {
                folded["kind"] = json!("comment");
            }
            folded
        };
        self.service.folds(path).into_iter().map(fold).collect()
    }

    /// Words as the protocol packs them: each by its distance from the one before.
    fn tokens(&self, path: &Path) -> Json {
        let positions = self.positions(path);
        let mut data: Vec<u64> = Vec::new();
        let mut before = (0, 0);
        for token in self.service.tokens(path) {
            let (line, column) = positions.line_column(token.range.start);
            let (_, end) = positions.line_column(token.range.end);
            let delta = line - before.0;
            let start = if delta == 0 { column - before.1 } else { column };
            let kind = match token.kind {
                TokenKind::Keyword => 0,
                TokenKind::Variable => 1,
                TokenKind::Property => 2,
                TokenKind::Function => 3,
                TokenKind::Text => 4,
                TokenKind::Number => 5,
                TokenKind::Comment => 6,
                TokenKind::Type => 7,
            };
            data.extend([delta as u64, start as u64, (end - column) as u64, kind, 0]);
            before = (line, column);
        }
        json!({"data": data})
    }

    fn hints(&self, path: &Path, text: &str, range: &Json) -> Json {
        let positions = self.positions(path);
        let start = offset(text, &range["start"]).unwrap_or(0);
        let end = offset(text, &range["end"]).unwrap_or(text.len());
        let hint = |hint: cuebook_lab::service::Hint| {
            let at = &positions.range(&(hint.at..hint.at))["start"];
            json!({"position": at, "label": hint.text, "paddingLeft": !hint.text.starts_with(':')})
        };
        self.service.hints(path, start..end).into_iter().map(hint).collect()
    }

    fn lenses(&self, path: &Path) -> Json {
        let positions = self.positions(path);
        let lens = |lens: cuebook_lab::service::Lens| {
            let prompt = lens.prompt.to_string_lossy().into_owned();
            let (title, command, arguments) = match lens.kind {
                LensKind::Render => ("Preview", "cuebook.preview", vec![prompt]),
                LensKind::Explain => ("Explain", "cuebook.explain", vec![prompt]),
                LensKind::RunCase => {
                    ("Run the case", "cuebook.test", [prompt].into_iter().chain(lens.case).collect())
                }
            };
            let command = json!({"title": title, "command": command, "arguments": arguments});
            json!({"range": positions.range(&lens.range), "command": command})
        };
        self.service.lenses(path).into_iter().map(lens).collect()
    }

    fn actions(&self, path: &Path, text: &str, range: &Json) -> Json {
        let start = offset(text, &range["start"]).unwrap_or(0);
        let end = offset(text, &range["end"]).unwrap_or(text.len());
        let positions = self.positions(path);
        let action = |action: Action| {
            let mut shown = json!({
                "title": action.title,
                "kind": match action.kind {
                    ActionKind::Fix => "quickfix",
                    ActionKind::Refactor => "refactor.extract",
                },
            });
            if let Some(finding) = &action.finding {
                shown["diagnostics"] = json!([self.shown(finding, &positions)]);
            }
            if !action.edits.is_empty() || !action.creates.is_empty() {
                shown["edit"] = self.edit(&action.edits, &action.creates, &[]);
            }
            if let Some(command) = action.command {
                shown["command"] =
                    json!({"title": action.title, "command": "cuebook.run", "arguments": command});
            }
            shown
        };
        let actions = self.service.actions(path, start..end).into_iter();
        actions.filter(|action| action.creates.is_empty() || self.files).map(action).collect()
    }

    /// One edit of several files.
    fn edit(&self, edits: &[Edit], creates: &[(PathBuf, String)], moves: &[(PathBuf, PathBuf)]) -> Json {
        let mut files: BTreeMap<&Path, Vec<&Edit>> = BTreeMap::new();
        for edit in edits {
            files.entry(&edit.location.path).or_default().push(edit);
        }
        let mut changes = serde_json::Map::new();
        for (path, edits) in files {
            let positions = self.positions(path);
            let edits = edits
                .into_iter()
                .map(|edit| json!({"range": positions.range(&edit.location.range()), "newText": edit.text}));
            changes.insert(uri_of(path), edits.collect());
        }
        if creates.is_empty() && moves.is_empty() {
            return json!({"changes": changes});
        }
        let mut operations = Vec::new();
        for (path, text) in creates {
            let uri = uri_of(path);
            let start = json!({"line": 0, "character": 0});
            let edits = json!([{"range": {"start": start, "end": start}, "newText": text}]);
            operations.push(json!({"kind": "create", "uri": uri, "options": {"overwrite": false}}));
            operations.push(json!({"textDocument": {"uri": uri, "version": null}, "edits": edits}));
        }
        let changed = changes.into_iter();
        let document = |(uri, edits)| json!({"textDocument": {"uri": uri, "version": null}, "edits": edits});
        operations.extend(changed.map(document));
        operations.extend(moves.iter().map(
            |(from, to)| json!({"kind": "rename", "oldUri": uri_of(from), "newUri": uri_of(to), "options": {"overwrite": false}}),
        ));
        json!({"documentChanges": operations})
    }

    /// The rendered text in parts, each with its origin.
    fn preview(&self, path: &Path, variables: &Json) -> Result<Json, String> {
        let values = variables.as_object().map(Variables::from_json).unwrap_or_default();
        let preview = match self.service.preview(path, &values) {
            Some(Ok(preview)) => preview,
            Some(Err(error)) => return Err(error.report(false)),
            None => return Err("this file belongs to no prompt".to_owned()),
        };
        let part = |part: &cuebook_lab::service::Part| {
            let location = part.location.as_ref().map(|location| self.location(location));
            json!({"text": part.text, "kind": part.kind, "label": part.label, "location": location})
        };
        let parts: Vec<Json> = preview.parts.iter().map(part).collect();
        Ok(json!({"prompt": preview.prompt, "parts": parts, "placeholders": preview.placeholders}))
    }
}

fn completion(one: Completion) -> Json {
    let kind = match one.kind {
        CompletionKind::Variable => 6,
        CompletionKind::Function => 3,
        CompletionKind::Keyword => 14,
        CompletionKind::File => 17,
        CompletionKind::Key => 10,
        CompletionKind::Value => 12,
        CompletionKind::Element => 7,
    };
    json!({
        "label": one.label,
        "kind": kind,
        "detail": one.detail,
        "documentation": {"kind": "markdown", "value": one.documentation},
    })
}

fn kind_of(kind: SymbolKind) -> u8 {
    match kind {
        SymbolKind::Variable => 13,
        SymbolKind::Block => 5,
        SymbolKind::Macro => 12,
        SymbolKind::File => 1,
        SymbolKind::Section => 3,
        SymbolKind::Role => 22,
        SymbolKind::Prompt => 2,
        SymbolKind::Tool => 12,
    }
}

/// The page of a finding's code. It is part of the program: an editor asks for it with `cuebook/page`.
fn page_of(finding: &Diagnostic) -> String {
    format!("cuebook:/{}.md", finding.code)
}

/// The text of a page, by its address or its code.
fn page(wanted: &str) -> Option<&'static str> {
    let code = wanted.trim_start_matches("cuebook:").trim_start_matches('/').trim_end_matches(".md");
    Code::find(code).map(Code::page)
}
