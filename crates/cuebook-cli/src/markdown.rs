//! Markdown for a terminal: as much of it as the help pages use.

use anstyle::{AnsiColor, Style};

use crate::screen;

/// The page in lines of at most some columns, with styles.
pub fn render(page: &str, columns: usize) -> String {
    let mut writer = Writer { out: String::new(), columns, paragraph: String::new(), indent: 0 };
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            writer.flush();
            let fence: String = trimmed.chars().take_while(|letter| *letter == '`').collect();
            if let Some(file) = trimmed.trim_start_matches('`').strip_prefix("file ") {
                writer.code(&format!("# {file}"));
            }
            for line in lines.by_ref().take_while(|line| line.trim() != fence) {
                writer.code(line);
            }
        } else if trimmed.starts_with('#') {
            writer.flush();
            writer.heading(trimmed.trim_start_matches('#').trim());
        } else if trimmed.starts_with('|') {
            writer.flush();
            writer.row(trimmed);
        } else if trimmed.is_empty() {
            writer.flush();
            writer.blank();
        } else {
            writer.text(line);
        }
    }
    writer.flush();
    writer.out
}

struct Writer {
    out: String,
    columns: usize,
    /// Lines of the source that are one paragraph or one item of a list.
    paragraph: String,
    /// Columns before all but the first line of it.
    indent: usize,
}

impl Writer {
    fn text(&mut self, line: &str) {
        let trimmed = line.trim_start();
        let marker = marker(trimmed);
        if marker > 0 {
            self.flush();
            let margin = line.len() - trimmed.len();
            self.indent = margin + marker;
            self.paragraph = " ".repeat(margin);
        } else if !self.paragraph.is_empty() {
            self.paragraph.push(' ');
        }
        self.paragraph.push_str(trimmed);
    }

    /// Ends the paragraph.
    fn flush(&mut self) {
        if self.paragraph.is_empty() {
            return;
        }
        let styled = inline(&self.paragraph);
        self.wrapped(&styled, 0, self.indent);
        self.paragraph.clear();
        self.indent = 0;
    }

    fn wrapped(&mut self, text: &str, first: usize, rest: usize) {
        let (first, rest) = (" ".repeat(first), " ".repeat(rest));
        let options = textwrap::Options::new(self.columns)
            .initial_indent(&first)
            .subsequent_indent(&rest)
            .word_separator(textwrap::WordSeparator::AsciiSpace)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        for line in textwrap::wrap(text, options) {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    fn heading(&mut self, text: &str) {
        let bold = Style::new().bold().underline();
        self.wrapped(&format!("{bold}{text}{bold:#}"), 0, 0);
    }

    /// Code keeps its lines: a command that is wrapped cannot be copied.
    fn code(&mut self, line: &str) {
        let quiet = AnsiColor::Cyan.on_default();
        self.out.push_str(&format!("    {quiet}{line}{quiet:#}\n"));
    }

    /// A row of a table: its first cell, and the others below it if they do not fit beside it.
    fn row(&mut self, line: &str) {
        let cells: Vec<String> = cells(line).iter().map(|cell| inline(cell)).collect();
        let is_rule = cells.iter().all(|cell| cell.chars().all(|letter| matches!(letter, '-' | ':')));
        let Some((first, rest)) = cells.split_first().filter(|_| !is_rule) else { return };
        let bold = Style::new().bold();
        let rest: Vec<&str> = rest.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect();
        let rest = rest.join(" · ");
        if first.is_empty() {
            self.wrapped(&rest, 2, 2);
        } else {
            self.wrapped(&format!("{bold}{first}{bold:#}"), 2, 2);
            if !rest.is_empty() {
                self.wrapped(&rest, 6, 6);
            }
        }
    }

    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }
}

/// Columns of the mark that begins an item of a list; none if the line is text.
fn marker(line: &str) -> usize {
    if line.starts_with("- ") || line.starts_with("* ") {
        return 2;
    }
    let digits = line.len() - line.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    if digits > 0 && line[digits..].starts_with(". ") { digits + 2 } else { 0 }
}

/// The cells of a row. A bar in code, or behind a backslash, is part of a cell.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_code = false;
    let mut letters = line.trim().trim_start_matches('|').chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&'|') => {
                cells.last_mut().into_iter().for_each(|cell| cell.push('|'))
            }
            '|' if !is_code => cells.push(String::new()),
            letter => {
                is_code ^= letter == '`';
                cells.last_mut().into_iter().for_each(|cell| cell.push(letter));
            }
        }
        if letter == '\\' && letters.peek() == Some(&'|') {
            letters.next();
        }
    }
    if cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Text with code, emphasis and links as styles.
fn inline(text: &str) -> String {
    let (code, bold) = (AnsiColor::Cyan.on_default(), Style::new().bold());
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((inner, after)) = rest.strip_prefix('`').and_then(|behind| behind.split_once('`')) {
            // Each word has its own style, so that a line can end between two.
            let words: Vec<String> = inner.split(' ').map(|word| format!("{code}{word}{code:#}")).collect();
            out.push_str(&words.join(" "));
            rest = after;
        } else if let Some((inner, after)) =
            rest.strip_prefix("**").and_then(|behind| behind.split_once("**"))
        {
            out.push_str(&format!("{bold}{inner}{bold:#}"));
            rest = after;
        } else if let Some((label, after)) = link(rest) {
            out.push_str(label);
            rest = after;
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// The label of a link at the beginning of a text, and what follows the link.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, behind) = text.strip_prefix('[')?.split_once("](")?;
    let (_, after) = behind.split_once(')')?;
    (!label.contains(['[', '\n'])).then_some((label, after))
}

/// The page as it is shown on this terminal.
pub fn page(text: &str) -> String {
    render(text, screen::width())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(page: &str, columns: usize) -> String {
        anstream::adapter::strip_str(&render(page, columns)).to_string()
    }

    #[test]
    fn paragraphs_and_lists_fit_the_width() {
        let page = "# A title\n\nOne two three\nfour five.\n\n- an item that is long\n  and goes on\n- another\n\n1. first\n";
        assert_eq!(
            plain(page, 16),
            "A title\n\nOne two three\nfour five.\n\n- an item that\n  is long and\n  goes on\n- another\n\n1. first\n"
        );
    }

    #[test]
    fn code_keeps_its_lines_and_tables_become_rows() {
        let page = "```sh\ncuebook render something --var name=value\n```\n| key | |\n| --- | --- |\n| `a|b` | what it *is*, in **short** |\n";
        assert_eq!(
            plain(page, 24),
            "    cuebook render something --var name=value\n  key\n  a|b\n      what it *is*, in\n      short\n"
        );
        assert_eq!(plain("see [the guide](guide.md) and `x y`\n", 60), "see the guide and x y\n");
    }

    #[test]
    fn every_page_of_help_fits_and_loses_no_word() {
        for (name, _, page) in crate::commands::help::TOPICS {
            let shown = plain(page, 80);
            let mut is_code = false;
            for line in shown.lines() {
                is_code = line.starts_with("    ");
                assert!(
                    is_code || line.chars().count() <= 80 || !line.trim().contains(' '),
                    "{name}: {line}"
                );
            }
            let words =
                |text: &str| text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 3).count();
            assert!(words(&shown) * 100 >= words(page) * 95, "{name}");
            let _ = is_code;
        }
    }
}
