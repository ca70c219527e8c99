"""The pytest plugin."""

from __future__ import annotations

import pytest

from conftest import GREETING
from test_lab import CASES


def _write(pytester: pytest.Pytester, name: str, text: str) -> None:
    path = pytester.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_cases_are_tests_and_a_failure_shows_the_diff(pytester: pytest.Pytester) -> None:
    _write(pytester, "prompts/greeting/template.md", GREETING)
    _write(pytester, "prompts/greeting/tests.md", CASES)
    done = pytester.runpytest_subprocess("-v")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*greeting/tests.md::polite PASSED*", "*greeting/tests.md::wrong FAILED*"])
    done.stdout.fnmatch_lines(["*- Hello Ada!*", "*+ Hello Bo!*<- *"])
    pytester.runpytest_subprocess("-k", "polite").assert_outcomes(passed=1, deselected=1)


def test_a_broken_file_fails_and_others_go_on(pytester: pytest.Pytester) -> None:
    for name, cases in (("a", CASES), ("b", "## one\n\n```yaml inputs\nname: [\n```\n")):
        _write(pytester, f"prompts/{name}/template.md", GREETING)
        _write(pytester, f"prompts/{name}/tests.md", cases)
    done = pytester.runpytest_subprocess()
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*error*CB*", "*prompts/b/tests.md:*"])


def test_cases_run_with_their_tests_and_not_before(pytester: pytest.Pytester) -> None:
    _write(pytester, "prompts/greeting/template.md", "{{ name | gone }}")
    _write(pytester, "prompts/greeting/tests.md", CASES + "\n```text contains\n## not a case\n```\n")
    done = pytester.runpytest_subprocess("--collect-only", "-q")
    done.stdout.fnmatch_lines(["*greeting/tests.md::polite", "*greeting/tests.md::wrong"])
    assert "not a case" not in done.stdout.str() and done.ret == 0
    (pytester.path / "prompts/greeting/template.md").write_text(GREETING)
    pytester.runpytest_subprocess("-k", "polite").assert_outcomes(passed=1, deselected=1)


def test_projects_are_named_in_the_configuration(pytester: pytest.Pytester) -> None:
    _write(pytester, "library/prompts/greeting/template.md", GREETING)
    _write(pytester, "library/prompts/greeting/tests.md", CASES)
    _write(pytester, "notes/tests.md", "# Not a file of cases\n")
    pytester.makeini("[pytest]\ncuebook_projects = library\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1, failed=1)
    pytester.runpytest_subprocess("--no-cuebook").assert_outcomes()


def test_a_mock_model_is_a_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_answer(mock_model, open_book, tmp_path):
            (tmp_path / "ask.prompty").write_text("---\\nname: ask\\nmodel: gpt-4o\\n---\\nuser:\\nWhy?\\n")
            rendered = open_book(tmp_path).render_file("ask.prompty")
            assert rendered.converse(mock_model.say("Because."))["result"] == "Because."
            assert mock_model.asked[0]["messages"] == [{"role": "user", "content": "Why?"}]
        """
    )
    pytester.makepyfile(
        test_runs="""
        import pytest
        from cuebook import CuebookError

        def test_run(mock_provider, open_book, tmp_path):
            (tmp_path / "prompts").mkdir()
            (tmp_path / "prompts/ask.prompty").write_text("---\\nname: ask\\nmodel: gpt-4o\\n---\\nuser:\\nWhy?\\n")
            book = open_book(tmp_path)
            mock_provider.say("Because.").reply(lambda body: f"You asked {body['messages'][-1]['content']}")
            assert book.run("ask").check().result == "Because."
            assert book.run("ask").check().result == "You asked Why?"
            assert len(mock_provider.asked) == 2
            mock_provider.reply(None)
            with pytest.raises(CuebookError, match="no answer left"):
                book.run("ask").check()
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)
