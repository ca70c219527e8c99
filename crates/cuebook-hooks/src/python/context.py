# What a hook finds in its context: functions that ask the host, and the state of the session.

import builtins


def receive_rest(data):
    """A frame that did not come in one piece."""
    parts, have = [data], len(data)
    size = 4 + int.from_bytes(data[:4], "little") if have >= 4 else None
    while size is None or have < size:
        data = posix.read(3, 1048576) if data else b""
        if not data:
            # The host is gone, or has no more calls for us.
            posix._exit(0)
        parts.append(data)
        have += len(data)
        if size is None and have >= 4:
            size = 4 + int.from_bytes(b"".join(parts)[:4], "little")
    return b"".join(parts)


def ask(function, **arguments):
    arguments = {name: value for name, value in arguments.items() if value is not None}
    with LOCK:
        try:
            send({"id": call["id"], "ask": function, "arguments": arguments})
        except OverflowError as error:
            raise ValueError(f"{function}: the arguments are too long ({error} bytes)") from None
        except Exception as error:
            if not isinstance(error, part("slow", "Unusable")):
                raise
            found = error.args[0]
            raise TypeError(f"{function}: JSON cannot hold {found['path']}, of type {found['type']}") from None
        answer = receive()
    if "raise" in answer:
        raise getattr(builtins, answer["raise"], RuntimeError)(answer["message"])
    return answer["value"]


def render_template(name, variables=None):
    return ask("render_template", name=name, variables=variables)


def get_variable(name):
    return ask("get_variable", name=name)


def read_file(path):
    return ask("read_file", path=posix.fspath(path))


def http_request(url, method=None, headers=None, body=None, json=None, timeout=None):
    if isinstance(method, str) and "://" in method and "://" not in url:
        url, method = method, url
    return ask("http_request", url=url, method=method, headers=headers, body=body, json=json, timeout=timeout)


def llm_call(prompt, system=None, model=None, max_tokens=None, timeout=None):
    return ask("llm_call", prompt=prompt, system=system, model=model, max_tokens=max_tokens, timeout=timeout)


class State(dict):
    def __call__(self, key=None, default=None):
        return self if key is None else self.get(key, default)


class AwaitedState(dict):
    async def __call__(self, key=None, default=None):
        return self if key is None else self.get(key, default)
