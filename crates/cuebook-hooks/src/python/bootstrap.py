# What a worker runs: it takes calls from descriptor 3, calls functions of one script, and writes replies to descriptor 4.
#
# A first call waits until this text is compiled, which takes longer than anything else here. So it is short, it imports only
# what the interpreter has loaded by itself or has built in (no `os`, no `json`, no `site`), and whatever a simple hook does not need
# stands in further texts that are compiled when they are needed: `context.py`, `imports.py` and `slow.py`. They share one
# namespace. Nothing here is a fence: the script can reach and change all of it, and the host believes nothing that it reads.

import posix
import sys
from _frozen_importlib_external import PathFinder
from _thread import allocate_lock, get_ident
from marshal import dumps, loads

PARTS = dict(zip(("context", "imports", "slow"), sys.argv[2:]))
OUT, ERR = sys.stdout, sys.stderr
LOCK, MAIN = allocate_lock(), get_ident()
SCALARS = {str, int, float, bool, type(None)}
COROUTINE = 0x380
functions_of_context = {}
# The function that was called last, and whether it is one that is awaited.
known = None, False

# Let go when a call fails, so that even a script that has taken all memory leaves enough to say so.
reserve = bytearray(4 << 20)

call = module = modules = driven = adopted = None
folders, own_names, packages, has_site, mentions_asyncio = (), frozenset(), set(), False, False


def part(text, name):
    if text in PARTS:
        exec(compile(PARTS.pop(text), "<cuebook>", "exec", 0, True), globals())
    return globals()[name]


def receive():
    data = posix.read(3, 32768)
    if not 4 < len(data) == 4 + int.from_bytes(data[:4], "little"):
        data = part("context", "receive_rest")(data)
    value = loads(data[4:])
    if "most" in value:
        value["most"] += len(data)
    return value


def send(value):
    try:
        data = dumps(value, 2)
    except ValueError:
        data = dumps(part("slow", "plain_copy")(value), 2)
    if call and len(data) > call["most"]:
        raise OverflowError(len(data))
    data = len(data).to_bytes(4, "little") + data
    done = posix.write(4, data)
    while done < len(data):
        done += posix.write(4, data[done : done + 1048576])


def plain(name):
    return lambda *given, **named: part("context", name)(*given, **named)


def awaited(name):
    async def function(*given, **named):
        return part("context", name)(*given, **named)

    return function


class Own:
    def find_spec(name, path=None, target=None):
        if name in own_names if path is None else name.rpartition(".")[0] in packages:
            return part("imports", "find_own")(name, path)
        if driven and name == "asyncio":
            return part("slow", "find_asyncio")()


class Installed:
    def find_spec(name, path=None, target=None):
        if path is None and not has_site:
            return part("imports", "find_installed")(name)


def load(path, text, places, sources):
    global module, modules, folders, own_names, mentions_asyncio
    folders, modules, name = places, sources, call["name"]
    if sources is None:
        files = [file for place in places for file in posix.listdir(place)]
    else:
        files = [file[len(place) + 1 :].split("/")[0] for place in places for file in sources if file.startswith(place + "/")]
    own_names = frozenset(file[:-3] if file[-3:] == ".py" else file for file in files)
    mentions_asyncio = "asyncio" in text
    sys.argv[:] = [path]
    new = sys.modules[name] = type(sys)(name)
    new.__file__ = path
    exec(compile(text, path, "exec", 0, True), new.__dict__)
    module = new


async def wait_for(awaitable):
    return await awaitable


def drive(awaitable):
    global driven
    if mentions_asyncio or "asyncio" in sys.modules:
        return part("slow", "run")(awaitable)
    # Most coroutines only wait for functions of the context, which never suspend them: no need of a loop.
    driven = awaitable if hasattr(awaitable, "cr_frame") else wait_for(awaitable)
    try:
        try:
            outcome = {"value": driven.send(None), "suspended": True}
        except StopIteration as stop:
            if not adopted:
                return stop.value
            outcome = {"value": stop.value}
        except BaseException as error:
            if not adopted:
                raise
            outcome = {"error": error}
        return part("slow", "finish")(**outcome)
    finally:
        driven = None


def perform():
    global known, reserve
    stage = "load"
    try:
        if "script" in call:
            load(*call["script"])
        stage = "call"
        name, arguments = call["function"], call["arguments"]
        function = getattr(module, name, None)
        if function is not known[0]:
            code = getattr(function, "__code__", None)
            if code is None or hasattr(function, "__wrapped__"):
                asynchronous = part("slow", "is_async")(function)
            else:
                asynchronous = code.co_flags & COROUTINE
            known = function, asynchronous
        function, asynchronous = known
        make = awaited if asynchronous else plain
        context = {"workspace_path": call["workspace"], "session": call["session"]}
        for key in call["functions"]:
            made = functions_of_context.get((make, key))
            if made is None:
                made = functions_of_context[make, key] = make(key)
            context[key] = made
        if "state" in call:
            context["session_state"] = part("context", "AwaitedState" if asynchronous else "State")(call["state"])
        before = dict(arguments[0]) if name == "pre_render" else {}
        result = function(*arguments, context)
        if hasattr(type(result), "__await__"):
            result = drive(result)
        stage = "return"
        if name == "post_render":
            return {"text": result} if type(result) is str else part("slow", "unusual_text")(result)
        if type(result) is not dict:
            result = part("slow", "unusual_dict")(result)
        changed, kept = {}, []
        for key, value in result.items():
            if type(value) in SCALARS and key in before and before[key] is value:
                kept.append(key)
            else:
                changed[key] = value
        return {"values": changed, "kept": kept}
    except BaseException as error:
        reserve = None
        return part("slow", "failed")(error, stage)


def settle():
    """Leaves nothing behind. What it says is whether that went without trouble."""
    try:
        if sys.stdout is not OUT or sys.stderr is not ERR:
            part("slow", "restore")()
        OUT.flush()
        ERR.flush()
        posix.get_inheritable(1), posix.get_inheritable(2)
        posix.waitpid(-1, posix.WNOHANG)
    except ChildProcessError:
        return True
    except BaseException:
        return False
    return part("slow", "end_children")()


# A file that is given to a child is the script's business, but never these two.
posix.set_inheritable(3, False)
posix.set_inheritable(4, False)
posix.register_at_fork(after_in_child=lambda: posix.closerange(3, 5))
# What was printed before a worker is stopped must not be lost in it.
OUT.reconfigure(line_buffering=True)
sys.meta_path.insert(sys.meta_path.index(PathFinder), Own)
sys.meta_path.append(Installed)
try:
    send({"ready": sys.version_info[:3]})
    while True:
        call = receive()
        # First of all the number, so that it is read whatever else there is.
        reply = {"id": call["id"]}
        reply.update(perform())
        if not settle():
            reply["over"] = True
        try:
            send(reply)
        except BaseException as error:
            send(part("slow", "unsendable")(reply, error))
        call = reply = None
        reserve = reserve or bytearray(4 << 20)
finally:
    # Whatever it was: the host notices the end, and nothing of the script may run any more.
    posix._exit(70)
