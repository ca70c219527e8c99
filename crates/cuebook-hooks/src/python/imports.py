# Modules that are not of the standard library: those that lie beside the script, then installed ones.
#
# What lies beside the script is only ever run from its source, as UTF-8. Byte code, libraries and other encodings are nothing
# that a person could have read before approving a pack. Of a pack, not even the files are read: its modules came with the
# script, as they were approved.

from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourceFileLoader, spec_from_file_location

# Nothing has been installed yet, and `site` has not looked for anything.
STANDARD = tuple(sys.path)
# What the standard library looks for and does not mind to miss: no reason to look at everything that is installed.
MISSED = {"_scproxy", "_winapi", "_winreg", "java", "msvcrt", "nt", "org", "winreg", "vms_lib"}


class Source(SourceFileLoader):
    def get_code(self, name):
        data = modules[self.path] if modules is not None else str(self.get_data(self.path), "utf-8")
        # What says its own encoding has it already.
        return compile(data.lstrip("\ufeff"), self.path, "exec", 0, True)


def is_file(path):
    if modules is not None:
        return path in modules
    try:
        # A plain file, whatever links lead to it.
        return posix.stat(path).st_mode & 0o170000 == 0o100000
    except OSError:
        return False


def is_folder(path):
    if modules is not None:
        return any(known.startswith(path + "/") for known in modules)
    try:
        return posix.stat(path).st_mode & 0o170000 == 0o040000
    except OSError:
        return False


def find_own(name, path):
    if path is not None:
        for folder in path:
            spec = find_in(folder, name)
            if spec:
                return spec
        # Others must not go on: they would find byte code and libraries.
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec = PathFinder.find_spec(name, STANDARD)
    if spec and spec.loader:
        return spec
    for folder in folders:
        spec = find_in(folder, name)
        if spec:
            return spec
    return None


def find_in(folder, name):
    last = name.rpartition(".")[2]
    if last == "__pycache__":
        return None
    base = f"{folder}/{last}"
    if is_file(base + "/__init__.py"):
        file = base + "/__init__.py"
        packages.add(name)
        return spec_from_file_location(name, file, loader=Source(name, file), submodule_search_locations=[base])
    if is_file(base + ".py"):
        return spec_from_file_location(name, base + ".py", loader=Source(name, base + ".py"))
    if not is_folder(base):
        return None
    packages.add(name)
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [base]
    return spec


def find_installed(name):
    global own_names, has_site
    if name in MISSED or name in getattr(sys, "stdlib_module_names", ()):
        return None
    has_site = True
    # `site` imports modules that customise it, which must not be the script's.
    own, own_names = own_names, frozenset()
    try:
        import site

        site.main()
    finally:
        own_names = own
    return PathFinder.find_spec(name)
