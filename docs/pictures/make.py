#!/usr/bin/env python3
"""Makes the pictures of the book: the page of `explain --html` and a terminal session, each in light and dark.

Needs Python 3, Debian's package `chromium` and a built `cuebook`:

    cargo build && python3 docs/pictures/make.py

The prompt and the commands are those of the README, so the pictures show what its session shows.
"""

import argparse
import hashlib
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs/src/images"
# The hash of what the pictures show. A test compares it with what the program shows today.
DIGEST = "session.sha256"
VALUES = ["--var", "company=Fjord Books", "--var", "name=Ada", "--var", 'items:=[{"title": "tea"}, {"title": "jam"}]']
SESSION = [
    ["render", "letter", *VALUES],
    ["explain", "letter", *VALUES, "--find", "refund"],
    ["render", "letter", *VALUES[:2], "--var", "nmae=Ada", *VALUES[4:]],
]
# Chromium's numbers for `prefers-color-scheme`.
SCHEMES = {"light": 1, "dark": 0}
# Foreground colours of a terminal, by the number of the escape sequence: light, dark.
COLOURS = {
    31: ("#b3261e", "#ff8a80"), 32: ("#1b6e2d", "#7ee787"), 33: ("#8a5a00", "#e3b341"), 34: ("#0b57d0", "#79c0ff"),
    35: ("#8e24aa", "#d2a8ff"), 36: ("#00696d", "#56d4dd"),
}
COLOURS |= {number + 60: colours for number, colours in COLOURS.items()}


def write_project(folder):
    """Writes the files that the README shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    files = re.findall(r"^(`{3,})file (\S+)\n(.*?)^\1$", readme, re.S | re.M)
    if not files:
        sys.exit("README.md shows no files")
    for _, name, text in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")


def run(cuebook, folder, arguments):
    """Runs one command as a terminal would show it. An error is part of the session."""
    environment = {**os.environ, "HOME": str(folder / "home"), "CLICOLOR_FORCE": "1", "COLUMNS": "100"}
    done = subprocess.run([cuebook, *arguments], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout


def digest(cuebook, folder, page):
    """A hash of everything that the pictures show: the files of the README, the commands and their output, and the page."""
    files = sorted(path for path in folder.rglob("*.md"))
    parts = [f"{path.relative_to(folder).as_posix()}\n{path.read_text(encoding='utf8')}" for path in files]
    parts += [f"{' '.join(arguments)}\n{run(cuebook, folder, arguments)}" for arguments in SESSION]
    parts.append(page.read_text(encoding="utf8"))
    return hashlib.sha256("\0".join(parts).replace(str(folder), "").encode()).hexdigest()


def quoted(word):
    name, sign, value = word.partition(":=")
    if not sign:
        name, sign, value = word.partition("=")
    if not re.search(r"[\s\"'{}\[\]]", word):
        return word
    return f'{name}{sign}"{value}"' if sign and '"' not in value else f"'{word}'"


def styled(text, dark):
    """Turns escape sequences into HTML."""
    out, open_tag = [], False
    bold, faint, colour = False, False, None
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        match = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not match:
            out.append(html.escape(part))
            continue
        for code in (int(c or 0) for c in match.group(1).split(";")):
            if code == 0: bold, faint, colour = False, False, None
            elif code == 1: bold = True
            elif code == 2: faint = True
            elif code == 22: bold = faint = False
            elif code == 39: colour = None
            elif code in COLOURS: colour = COLOURS[code][dark]
        if open_tag: out.append("</span>")
        style = ("font-weight:700;" if bold else "") + ("opacity:.65;" if faint else "") + (f"color:{colour};" if colour else "")
        open_tag = bool(style)
        if open_tag: out.append(f'<span style="{style}">')
    return "".join(out) + ("</span>" if open_tag else "")


def session_page(cuebook, folder, dark):
    background, text, bar = ("#0d1117", "#e6edf3", "#21262d") if dark else ("#ffffff", "#1f2328", "#eaeef2")
    parts = []
    for arguments in SESSION:
        command = "cuebook " + " ".join(quoted(word) for word in arguments)
        parts.append(f'<b style="opacity:.6">$</b> {html.escape(command)}\n{styled(run(cuebook, folder, arguments), dark)}')
    return f"""<!doctype html><meta charset="utf-8"><style>
      body {{ margin: 0; padding: 20px; background: {bar}; }}
      pre {{ margin: 0; padding: 18px 22px; border-radius: 10px; background: {background}; color: {text};
             font: 14px/1.5 "DejaVu Sans Mono", monospace; white-space: pre-wrap; }}
    </style><pre>{chr(10).join(parts)}</pre>"""


def photograph(chromium, page, target, scheme, size):
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run([
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--hide-scrollbars", f"--user-data-dir={profile}",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", "--force-device-scale-factor=1.5",
            f"--window-size={size[0]},{size[1]}", f"--screenshot={target}", page.as_uri(),
        ], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not target.is_file():
        sys.exit(f"chromium wrote no {target.name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuebook", default=ROOT / "target/debug/cuebook", type=pathlib.Path, help="the program to show")
    parser.add_argument("--out", default=IMAGES, type=pathlib.Path, help="the folder for the pictures")
    parser.add_argument("--check", action="store_true", help="make no pictures; fail if those in the folder are not current")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium and not options.check:
        sys.exit("chromium is missing: apt-get install chromium")
    if not options.cuebook.is_file():
        sys.exit(f"{options.cuebook} is missing: cargo build")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_project(folder)
        cuebook = options.cuebook.resolve()
        page = folder / "explain.html"
        subprocess.run([cuebook, "explain", "letter", *VALUES, "--html", page], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        if options.check:
            kept = (options.out / DIGEST).read_text(encoding="utf8").strip()
            sys.exit(0 if kept == digest(cuebook, folder, page) else f"the pictures are not current: {options.out / DIGEST} differs")
        for scheme in SCHEMES:
            photograph(chromium, page, options.out.resolve() / f"explain-{scheme}.png", scheme, (1100, 575))
            session = folder / f"session-{scheme}.html"
            session.write_text(session_page(cuebook, folder, scheme == "dark"), encoding="utf8")
            photograph(chromium, session, options.out.resolve() / f"session-{scheme}.png", scheme, (1100, 490))
        (options.out / DIGEST).write_text(digest(cuebook, folder, page) + "\n", encoding="utf8")
    print("\n".join(str(path) for path in sorted(options.out.glob("*.png"))))


main()
