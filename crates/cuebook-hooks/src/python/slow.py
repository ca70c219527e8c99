# The rare half of a worker: errors, values that JSON cannot hold, and an event loop for a coroutine that needs one.

LONGEST = 4000
MAX_FRAMES = 50
DEEPEST = 100


# Exceptions.


class Unusable(Exception):
    """What a function returned is not what it must return."""


def readable(text):
    text = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return text.encode("utf-8", "backslashreplace").decode()


def name_of(kind):
    owner = getattr(kind, "__module__", None)
    own = owner in ("builtins", None, call["name"])
    return readable(str(kind.__qualname__ if own else f"{owner}.{kind.__qualname__}"))


def text_of(error):
    try:
        return readable(str(error))
    except BaseException:
        return "(its text cannot be made)"


def frames_of(error):
    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if file != "<cuebook>" and not file.startswith("<frozen importlib"):
            frames.append({"file": readable(file), "line": trace.tb_lineno or 0, "function": readable(code.co_name)})
        trace = trace.tb_next
    # The loop that runs the coroutine is as little of the script's making as we are.
    while len(frames) > 1 and "/asyncio/" in frames[0]["file"] and frames[0]["file"] not in sys.argv:
        del frames[0]
    if len(frames) > MAX_FRAMES:
        del frames[10 : 10 - MAX_FRAMES]
    return frames


def causes_of(error):
    causes, seen = [], {id(error)}
    while len(causes) < 5:
        explicit = error.__cause__ is not None
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if error is None or id(error) in seen:
            break
        seen.add(id(error))
        causes.append(dict(described(error), explicit=explicit))
    return causes


def described(error):
    found = {"type": name_of(type(error)), "message": text_of(error), "frames": frames_of(error), "ours": is_ours(error)}
    if found["frames"]:
        found["frame"] = found["frames"][-1]
    return found


def is_ours(error):
    """Whether it was raised by a function of the context rather than by the script or what that uses."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename == "<cuebook>"


def notes_of(error):
    return [readable(str(note)) for note in list(getattr(error, "__notes__", None) or ())[:5]]


def inner_of(error):
    """The exceptions of a group, also those of groups in it."""
    leaves, groups = [], [error]
    while groups and len(leaves) + len(groups) < 50:
        inner = getattr(groups.pop(0), "exceptions", None)
        for one in inner if isinstance(inner, tuple) else ():
            (groups if isinstance(getattr(one, "exceptions", None), tuple) else leaves).append(one)
    return [dict(described(one), explicit=False) for one in leaves[:50] if isinstance(one, BaseException)]


def shadow_of(error, text):
    """The module of the standard library in which something was looked for that may be in the script's own of that name."""
    if isinstance(error, AttributeError) and text.startswith("module '"):
        name = text.split("'")[1]
    elif isinstance(error, ImportError) and text.startswith("cannot import name"):
        name = str(error.name)
    else:
        return None
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    is_own = any(file.startswith(folder + "/") for folder in folders)
    return readable(name) if name in own_names and name in sys.modules and not is_own else None


def failed(error, stage):
    try:
        if stage == "load":
            sys.modules.pop(call["name"], None)
        if isinstance(error, Unusable):
            return {"error": error.args[0]}
        if stage == "call" and not callable(getattr(module, call["function"], None)):
            kind = name_of(type(getattr(module, call["function"], None)))
            return {"error": {"kind": "missing", "type": kind, "defined": hasattr(module, call["function"])}}
        found = {"kind": "raised", "stage": stage, "type": name_of(type(error)), "message": text_of(error)}
        found["bases"] = [base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"]
        found["frames"] = frames_of(error)
        found["notes"] = notes_of(error)
        found["causes"] = causes_of(error)
        found["inner"] = inner_of(error)
        found["ours"] = is_ours(error)
        found["shadowed"] = shadow_of(error, found["message"])
        if isinstance(error, SyntaxError) and isinstance(error.lineno, int):
            found["syntax"] = {
                "file": readable(str(error.filename)),
                "line": max(error.lineno, 0),
                "column": max(error.offset, 0) if isinstance(error.offset, int) else 0,
                "message": readable(str(error.msg)),
            }
        return {"error": found}
    except BaseException:
        return {"error": {"kind": "raised", "stage": stage, "type": type(error).__name__, "message": ""}}


# What a function returned.


def is_async(function):
    """Whether a function is one that is awaited, also behind what decorators made of it."""
    for _ in range(20):
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & 0x380:
            return True
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None and code is None:
            inner = getattr(type(function), "__call__", None)
        if inner is None:
            return False
        function = inner
    return False


def wrong_type(result, wanted):
    yields = type(result).__name__ in ("generator", "async_generator")
    return Unusable({"kind": "returned", "type": name_of(type(result)), "wanted": wanted, "yields": yields})


def unusual_text(result):
    if not isinstance(result, str):
        raise wrong_type(result, "str")
    return {"text": str.__str__(result)}


def unusual_dict(result):
    if not isinstance(result, dict):
        raise wrong_type(result, "dict")
    return result


def plain_copy(value):
    """The same value made of plain types, if what keeps it from being written is only that some are derived from those."""
    for key in ("values", "arguments", "text"):
        if key in value:
            error = not_json(value[key], {"values": returned(), "arguments": "arguments"}.get(key, "text"))
            if error:
                raise Unusable(error)
    return simple(value)


def simple(value):
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind.__new__(kind, kind.__str__(value) if kind is str else kind.__repr__(value))
    if isinstance(value, dict):
        return {simple(key): simple(inner) for key, inner in dict.items(value)}
    return [simple(inner) for inner in value]


def returned():
    return "variables" if call["function"] == "pre_render" else "provide()"


def like(kind):
    """What a type is one of, where there is a usual way to make something of it that JSON can hold."""
    if hasattr(kind, "__dataclass_fields__"):
        return "dataclass"
    if any(base.__module__ == "enum" and base.__name__ == "Enum" for base in kind.__mro__):
        return "enum"
    return "path" if hasattr(kind, "__fspath__") else ""


def not_json(value, path, depth=0, above={}):
    """The first thing in a value that JSON cannot hold."""

    def because(why, **more):
        found = {"kind": "not_json", "path": readable(path), "type": name_of(type(value)), "why": why}
        return dict(found, like=like(type(value)), **more)

    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if is_whole(value) else because("surrogate")
    if isinstance(value, int):
        return None if -(1 << 63) <= value < 1 << 64 else because("int")
    if isinstance(value, float):
        return None if value - value == 0 else because("float", value=float.__repr__(value))
    if not isinstance(value, (dict, list, tuple)):
        return because("type")
    if id(value) in above:
        # It is called by the way on which it was met first.
        path = above[id(value)]
        return because("cycle")
    if depth > DEEPEST:
        return because("depth", value=str(DEEPEST))
    above = {**above, id(value): path}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or not is_whole(key):
                return because("key", value=readable(repr(key)), key=name_of(type(key)))
        parts = ((f'{path}["{key}"]', inner) for key, inner in value.items())
    else:
        parts = ((f"{path}[{index}]", inner) for index, inner in enumerate(value))
    for where, inner in parts:
        error = not_json(inner, where, depth + 1, above)
        if error:
            return error
    return None


def is_whole(text):
    try:
        str.encode(text)
    except UnicodeEncodeError:
        return False
    return True


def unsendable(reply, error):
    """What is said instead of a reply that cannot be written."""
    if isinstance(error, OverflowError):
        instead = {"error": {"kind": "large", "size": error.args[0]}}
    else:
        instead = failed(error, "return")
    instead["id"] = call["id"]
    return dict(instead, over=True) if "over" in reply else instead


# What a function left behind.


def restore():
    """Puts the streams back that the script replaced."""
    replaced, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), OUT, ERR
    for stream in replaced:
        try:
            stream.flush()
        except Exception:
            pass


def end_children():
    """Ends processes that still run, which only the first process of a namespace of its own can do."""
    try:
        while posix.waitpid(-1, posix.WNOHANG)[0]:
            pass
        if posix.getpid() == 1:
            posix.kill(-1, 9)
            while True:
                posix.waitpid(-1, 0)
    except ChildProcessError:
        return True
    except OSError:
        pass
    return False


# A coroutine that needs an event loop, from the beginning or on its way.


def run(awaitable):
    import asyncio

    return asyncio.run(wait_for(awaitable))


class Started:
    """The rest of a coroutine that was started by hand, as a task sees it."""

    def __init__(self, coroutine):
        self.coroutine = coroutine
        self.first = None

    def send(self, value):
        if self.first is None:
            return self.coroutine.send(value)
        first, self.first = self.first, None
        return first()

    def throw(self, *error):
        self.first = None
        return self.coroutine.throw(*error)

    def close(self):
        self.coroutine.close()

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)


def adopt():
    """Makes a loop, and makes it look as if the coroutine had been its task from the beginning."""
    global adopted
    import asyncio

    if adopted is None:
        loop = asyncio.new_event_loop()
        started = Started(driven)
        task = loop.create_task(started)
        loop._thread_id = MAIN
        asyncio._set_running_loop(loop)
        asyncio.tasks._enter_task(loop, task)
        adopted = loop, started, task


def find_asyncio():
    """Finds `asyncio` for a coroutine that runs already: once it is imported, there is a loop."""
    spec = PathFinder.find_spec("asyncio")
    thread = get_ident()
    execute = spec.loader.exec_module

    def exec_module(imported):
        execute(imported)
        if driven is not None and thread == MAIN:
            adopt()

    spec.loader.exec_module = exec_module
    return spec


def finish(value=None, error=None, suspended=False):
    """Lets the loop go on where the coroutine stands: it returned, raised, or waits for something."""
    global adopted
    import asyncio

    adopt()
    (loop, started, task), adopted = adopted, None
    asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    loop._thread_id = None

    def first():
        if error is not None:
            raise error
        if suspended:
            return value
        raise StopIteration(value)

    started.first = first
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(task)
    finally:
        try:
            rest = asyncio.all_tasks(loop)
            for other in rest:
                other.cancel()
            if rest:
                loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
