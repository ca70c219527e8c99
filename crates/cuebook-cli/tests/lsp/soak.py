"""`cuebook lsp` with a real client, which checks the type of every answer, as several editors introduce themselves."""

import os
import pathlib
import random

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

EDITORS = ["visual_studio_code", "neovim", "emacs"]
PROJECT = pathlib.Path(os.environ["CUEBOOK_PROJECT"])
TEMPLATE = PROJECT / "prompts" / "greet" / "template.md"
TEXT = 'Hello {{ name }}!\n{% include "parts/end.md" %}\n{% if name %}\nHi\n{% endif %}\n'


@pytest_lsp.fixture(
    params=EDITORS,
    config=ClientServerConfig(server_command=[os.environ["CUEBOOK_PROGRAM"], "lsp", "--root", str(PROJECT)]),
)
async def client(request, lsp_client: LanguageClient):
    # The client does not watch files: the server is told so by an answer without an error.
    lsp_client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda *_: None)
    capabilities = client_capabilities(request.param)
    params = types.InitializeParams(capabilities=capabilities, root_uri=PROJECT.as_uri())
    await lsp_client.initialize_session(params)
    yield
    await lsp_client.shutdown_session()


def document(path: pathlib.Path) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri=path.as_uri())


def memory(client: LanguageClient) -> int:
    status = pathlib.Path(f"/proc/{client._server.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def opened(client: LanguageClient, text: str) -> None:
    item = types.TextDocumentItem(uri=TEMPLATE.as_uri(), language_id="markdown", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))


async def everything(client: LanguageClient, position: types.Position) -> None:
    """Asks every question that the server says it can answer."""
    at = {"text_document": document(TEMPLATE), "position": position}
    whole = types.Range(start=types.Position(line=0, character=0), end=types.Position(line=99, character=0))
    await client.text_document_hover_async(types.HoverParams(**at))
    await client.text_document_definition_async(types.DefinitionParams(**at))
    await client.text_document_references_async(
        types.ReferenceParams(**at, context=types.ReferenceContext(include_declaration=True))
    )
    await client.text_document_document_highlight_async(types.DocumentHighlightParams(**at))
    await client.text_document_completion_async(types.CompletionParams(**at))
    await client.text_document_signature_help_async(types.SignatureHelpParams(**at))
    await client.text_document_prepare_rename_async(types.PrepareRenameParams(**at))
    here = {"text_document": document(TEMPLATE)}
    await client.text_document_document_symbol_async(types.DocumentSymbolParams(**here))
    await client.text_document_document_link_async(types.DocumentLinkParams(**here))
    await client.text_document_folding_range_async(types.FoldingRangeParams(**here))
    await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(**here))
    await client.text_document_code_lens_async(types.CodeLensParams(**here))
    await client.text_document_inlay_hint_async(types.InlayHintParams(**here, range=whole))
    await client.text_document_code_action_async(
        types.CodeActionParams(**here, range=whole, context=types.CodeActionContext(diagnostics=[]))
    )
    await client.text_document_formatting_async(
        types.DocumentFormattingParams(**here, options=types.FormattingOptions(tab_size=2, insert_spaces=True))
    )
    await client.workspace_symbol_async(types.WorkspaceSymbolParams(query="g"))


@pytest.mark.asyncio
async def test_answers_have_the_types_of_the_protocol(client: LanguageClient):
    opened(client, TEXT + "{{ name|uper }}")
    await client.wait_for_notification("textDocument/publishDiagnostics")
    found = [item for items in client.diagnostics.values() for item in items if item.code == "CB316"]
    assert found and found[0].code_description.href == "cuebook:/CB316.md"
    for line in range(6):
        for character in (0, 4, 9, 14):
            await everything(client, types.Position(line=line, character=character))
    rename = types.RenameParams(
        text_document=document(TEMPLATE), position=types.Position(line=0, character=10), new_name="person"
    )
    edit = await client.text_document_rename_async(rename)
    assert len(edit.changes) >= 2


@pytest.mark.asyncio
async def test_a_long_session_keeps_its_memory(client: LanguageClient):
    chance = random.Random(26)
    opened(client, TEXT)
    version = 1
    seen = []
    for round_number in range(4):
        for _ in range(100):
            version += 1
            at = types.Position(line=chance.randrange(5), character=chance.randrange(12))
            letter = chance.choice(["{", "}", "%", " ", "a", "\n", '"', "|"])
            new = types.TextDocumentContentChangePartial(range=types.Range(start=at, end=at), text=letter)
            back = types.TextDocumentContentChangeWholeDocument(text=TEXT)
            change = new if version % 10 else back
            client.text_document_did_change(
                types.DidChangeTextDocumentParams(
                    text_document=types.VersionedTextDocumentIdentifier(uri=TEMPLATE.as_uri(), version=version),
                    content_changes=[change],
                )
            )
            if version % 25 == 0:
                await everything(client, at)
        seen.append(memory(client))
    # What is kept is kept once: after the first rounds nothing grows by as much as a few megabytes.
    assert seen[-1] - seen[1] < 16_000, seen
