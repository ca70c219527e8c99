# rye:signed:2026-11-17T04:37:23Z:8254435bffe7cc4394b23b2408d02c013a89d7111f46bae44e91305343904a4d:02HC1vYMKqkWRsGC_6EO4834OV0e_XkgDVaPX_mAydEKk8u6w4RDXmx3puiNoKZg2dMHN2Jyjj4h_ABOh2fnBQ==:c6c547bee16d153f|cuebook@tool/rye/core/runtimes/python/lib/_cuebook.py
"""What the bundled Python tools share: their parameters, their answers, and the borders of a project.

It lies in the library folder of the Python runtimes, which puts that folder on the path; any tool may use it.
"""

import json
import os
import stat
import sys


class Refused(Exception):
    """Something that a tool will not do. `code` is a code of Cuebook, if there is one for it."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


def arguments():
    """The parameters and the project, from the standard input or from the arguments of the program."""
    project, given = os.getcwd(), None
    words = iter(sys.argv[1:])
    for word in words:
        if word == "--project-path":
            project = next(words, project)
        elif word == "--params":
            given = next(words, None)
    text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    params = json.loads(text if text.strip() else given or "{}")
    if not isinstance(params, dict):
        raise Refused("the parameters must be an object")
    return params, project


def run(function):
    """Calls a tool's function with its parameters and prints what it returns."""
    try:
        params, project = arguments()
        answer = {"success": True}
        answer.update(function(params, project))
    except Refused as refused:
        answer = {"success": False, "error": str(refused)}
        if refused.code:
            answer["code"] = refused.code
    except (OSError, ValueError) as error:
        answer = {"success": False, "error": describe(error)}
    json.dump(answer, sys.stdout, ensure_ascii=False)
    sys.stdout.write("\n")


def describe(error):
    """An error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def text(params, name, default=None):
    """A parameter that is text."""
    value = params.get(name, default)
    if not isinstance(value, str):
        raise Refused(f"`{name}` must be text")
    return value


def whole(params, name, default, least=0):
    """A parameter that is a whole number."""
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Refused(f"`{name}` must be a whole number of at least {least}")
    return value


def inside(project, path):
    """The real path of something in a project. Where it leads out, by `..` or by a link, it is refused."""
    if "\0" in path:
        raise Refused("a path has no NUL character")
    root = os.path.realpath(project)
    real = os.path.realpath(os.path.join(root, path))
    if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
        raise Refused(f"{path} leads out of the project", "CB709")
    return real


def shown(project, path):
    """A path as people see it: relative to the project."""
    return os.path.relpath(path, os.path.realpath(project)).replace(os.sep, "/")


def walk(project, start):
    """Every file below a folder of a project, in order. Links to folders are not followed, links out are left out."""
    root = os.path.realpath(project)
    for folder, folders, names in os.walk(start):
        folders[:] = sorted(name for name in folders if name not in (".git", "node_modules", "__pycache__", ".venv"))
        for name in sorted(names):
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            if real.startswith(root.rstrip(os.sep) + os.sep):
                yield path


def open_parent(project, path, make=False):
    """A descriptor of the folder that a real path lies in, and the name in it. On the way from the project no link is
    followed, so it does not matter what somebody puts there after the path was looked at."""
    root = os.path.realpath(project)
    parts = os.path.relpath(path, root).split(os.sep)
    if ".." in parts:
        raise Refused(f"{path} leads out of the project", "CB709")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for part in parts[:-1]:
        try:
            if make:
                try:
                    os.mkdir(part, dir_fd=descriptor)
                except FileExistsError:
                    pass
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor, parts[-1]


def open_in(project, path, flags):
    """A descriptor of a real path of a project, opened without following a link."""
    folder, name = open_parent(project, path)
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def read_text(project, path, limit):
    """The text of a file, and whether there was more of it."""
    try:
        # Without waiting: what has no writer yet (a named pipe) is no file.
        descriptor = open_in(project, path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise Refused("there is no such file") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(f"{os.path.basename(path)} is no file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if b"\0" in data[:8192]:
        raise Refused("the file is not text")
    return data[:limit].decode("utf-8", "replace"), len(data) > limit


def write_text(project, path, content):
    """Writes a file whole: a reader sees the old text or the new one."""
    data = content.encode("utf-8")
    folder, name = open_parent(project, path, make=True)
    try:
        try:
            before = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            before = None
        if before is not None and stat.S_ISDIR(before):
            raise Refused("a folder of this name is there")
        temporary = f"{name}.{os.getpid()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if before is not None and stat.S_ISREG(before):
                    os.fchmod(file.fileno(), before & 0o7777)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
    finally:
        os.close(folder)


def again(data):
    """Makes bytes that were read from the standard input readable there once more."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("parameters")
    else:
        import tempfile

        descriptor = os.dup(tempfile.TemporaryFile().fileno())
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.dup2(descriptor, 0)
    os.close(descriptor)


def run_script(path, project):
    """Runs a file as the main program, with its parameters in `sys.argv` and not in the arguments of the process."""
    import types

    with os.fdopen(os.dup(0), "rb") as stream:
        data = stream.read()
    again(data)
    sys.argv = [path, "--params", data.decode("utf-8") or "{}", "--project-path", project]
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def call_function(path, project):
    """Calls `execute` of a file."""
    import importlib.util
    import inspect

    params = json.loads(sys.stdin.read() or "{}")
    # The answer has the standard output for itself, whatever the tool or a library of it prints.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    function = getattr(module, "execute", None)
    if not callable(function):
        sys.exit(f"{os.path.basename(path)} has no function `execute(params, project_path)`")
    result = function(params, project)
    if inspect.isawaitable(result):
        import asyncio

        async def awaited():
            return await result

        result = asyncio.run(awaited())
    json.dump(result, answers, ensure_ascii=False, default=str)
    answers.write("\n")
    answers.close()


if __name__ == "__main__":
    {"script": run_script, "function": call_function}[sys.argv[1]](sys.argv[2], sys.argv[3])
