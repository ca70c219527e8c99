"""The environment that `transformers` documents for chat templates, with a clock that does not move."""
import json, sys
from datetime import datetime
from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

class Generation(Extension):
    tags = {"generation"}
    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)
    def _text(self, caller):
        return caller()

def raise_exception(message):
    raise TemplateError(message)

def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols, "jinja2.ext.do"])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = lambda format: datetime(2026, 7, 4, 5, 6, 7).strftime(format)
out = []
for case in json.load(sys.stdin):
    try:
        out.append({"text": env.from_string(case["main"]).render(case["context"])})
    except Exception as error:
        out.append({"error": str(error)})
print(json.dumps(out))
