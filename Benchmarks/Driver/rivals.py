"""Rivals that no registry has: built from the checkouts that RIVALS names. None of their code is in here."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

# By executable: the folder below RIVALS.
CHECKOUTS = {"bench-sqliteswift": "SQLite.swift", "mmkv": "MMKV", "fmdb": "fmdb"}
# What Debian calls that which they are built with.
PACKAGES = {"mmkv": ["g++", "zlib1g-dev"], "fmdb": ["clang", "gobjc", "libgnustep-base-dev", "libblocksruntime-dev"]}


class Skipped(Exception):
    """A system that cannot be built or run here, with the reason."""


def folder(executable):
    return Path(os.environ["RIVALS"]).resolve() / CHECKOUTS[executable] if os.environ.get("RIVALS") else None


def checkout(executable):
    path = folder(executable)
    if path is None:
        raise Skipped("RIVALS names no folder of checkouts (see Benchmarks/README.md)")
    if not path.is_dir():
        raise Skipped(f"RIVALS has no folder {path.name}")
    return path


def packages():
    """Those for the checkouts that are there."""
    return [name for executable, names in PACKAGES.items() if folder(executable) and folder(executable).is_dir()
            for name in names]


def origin(path):
    """What was built, as git tells it: the version is the newest tag and the commits since."""
    return {"version": git(path, "describe", "--tags", "--always"),
            "commit": git(path, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")}


def git(path, *words):
    # Without a repository of its own, git would tell of the one around it.
    if not (path / ".git").exists():
        return "unknown"
    command = ["git", "-c", f"safe.directory={path}", "-C", str(path), *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip() or "unknown"


def build(engine, executable):
    """Adds to the engine's origins what was built."""
    path = checkout(executable)
    BUILDERS[executable](engine, path)
    engine.origins[executable] = origin(path)


def compile_with(engine, compiler, arguments):
    if not shutil.which(compiler):
        raise Skipped(f"{compiler} is not installed")
    done = engine.run_quietly([compiler, "-O2", *map(str, arguments)])
    if done.returncode != 0:
        # The first lines of a failure name its cause.
        raise Skipped(f"{compiler} failed: {done.stdout.strip()[:600]}")


def is_built(target, sources):
    return target.exists() and all(source.stat().st_mtime < target.stat().st_mtime for source in sources)


def compile_workload(engine):
    """The shared C, for those whose compiler takes another language."""
    shared, target = engine.sources / "CWorkload", engine.tools / "workload.o"
    compiler = engine.environment.get("CC", "cc")
    compile_with(engine, compiler, ["-std=gnu17", "-I", shared / "include", "-c", shared / "workload.c", "-o", target])
    return target


# SQLite.swift


def build_sqliteswift(engine, path):
    """Package.swift compiles the sources behind this link; a target's folder has to be in its package."""
    link = engine.home / ".build-rivals/SQLite"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(path / "Sources/SQLite")
    try:
        engine.swift_build("bench-sqliteswift", is_rival=True)
    except subprocess.CalledProcessError:
        raise Skipped("SQLite.swift could not be built (see above)")


# MMKV


def build_mmkv(engine, path):
    """Its core with the files that its CMakeLists.txt has for the processor, and the system's zlib."""
    core, adapter, target = path / "Core", engine.sources / "CRivals/mmkv.cpp", engine.tools / "mmkv"
    folders = [core, core / "aes", core / "aes/openssl", core / "crc32", core / "crc32/zlib"]
    sources = [source for folder in folders for source in sorted(folder.glob("*.cpp"))]
    includes = ["-I", core, "-I", engine.sources / "CWorkload/include"]
    if platform.machine() in ("aarch64", "arm64"):
        sources.append(core / "aes/openssl/openssl_aesv8-armx.S")
        includes.append("-march=armv8-a+crypto")
    shared = engine.sources / "CWorkload"
    if is_built(target, [adapter, *shared.glob("**/*.[ch]"), *sources]):
        return
    compile_with(engine, engine.environment.get("CXX", "c++"),
                 ["-std=c++20", "-DNDEBUG", "-w", *includes, adapter, *sources, compile_workload(engine),
                  "-lz", "-pthread", "-o", target])


# FMDB


def build_fmdb(engine, path):
    """By clang for GCC's Objective-C runtime, the one of Debian's GNUstep."""
    for tool in ["gnustep-config", "gcc"]:
        if not shutil.which(tool):
            raise Skipped(f"FMDB needs GNUstep and GCC's runtime, and {tool} is not installed")
    copy = engine.tools / "fmdb-sources"
    for_older_runtime(path / "src/fmdb", copy)
    own = engine.sources / "CRivals"
    gnustep = own / "gnustep"
    # Dependency files and debug information are of no use here.
    flags = [flag for flag in config(engine, "--objc-flags") if flag not in ("-MMD", "-MP", "-g")]
    flags += ["-fobjc-runtime=gcc", "-fblocks", "-w", "-DSQLCIPHER_CRYPTO", "-include", gnustep / "apple.h"]
    flags += ["-I", gnustep, "-I", copy, "-I", engine.sources / "CWorkload/include"]
    # GCC's headers of Objective-C lie among its own of C, which are not clang's.
    flags += ["-idirafter", engine.output(["gcc", "-print-file-name=include"]).strip()]
    sources = [own / "fmdb.m", *sorted(copy.glob("*.m"))]
    libraries = [*config(engine, "--base-libs"), "-lBlocksRuntime", *engine.flags(["sqlcipher"])]
    compile_with(engine, "clang",
                 [*flags, *sources, compile_workload(engine), *libraries, "-o", engine.tools / "fmdb"])


def config(engine, option):
    return engine.output(["gnustep-config", option]).split()


def for_older_runtime(path, copy):
    """A copy for a runtime whose classes have their variables in their interfaces, and that has no subscripts.

    Each variable of a class extension, and of each property that the compiler would synthesize, moves there.
    """
    copy.mkdir(exist_ok=True)
    for name in ["FMDatabasePool.h", "FMDatabase+SQLCipher.h"]:
        shutil.copy(path / name, copy)
    for name, classes in [("FMDatabase", ["FMDatabase", "FMStatement"]), ("FMResultSet", ["FMResultSet"]),
                          ("FMDatabase+SQLCipher", [])]:
        header, source = (path / f"{name}.h").read_text(), (path / f"{name}.m").read_text()
        for of in classes:
            header, source = with_variables(header, source, of)
        source = re.sub(r"([\w.]+)\[(@\"\w+\"|i)\]", subscript, source)
        (copy / f"{name}.h").write_text(header)
        (copy / f"{name}.m").write_text(source)


def subscript(found):
    owner, key = found.groups()
    return f"[{owner} objectAtIndex:{key}]" if key == "i" else f"[{owner} objectForKey:{key}]"


def with_variables(header, source, of):
    """The header and the source of the class, with what the runtime wants."""
    whole = re.S | re.M
    interface = re.search(rf"^@interface {of} : NSObject *(?:\{{(.*?)\n\}})?(.*?)^@end$", header, whole)
    extension = re.search(rf"^@interface {of} \(\) *(?:\{{(.*?)\n\}})?(.*?)^@end$", source, whole)
    implementation = re.search(rf"^@implementation {of}$(.*?)^@end$", source, whole)
    if not interface or not implementation:
        raise Skipped(f"FMDB has no class {of} as this knows it")
    variables, properties = interface.group(1) or "", interface.group(2)
    if extension:
        variables += extension.group(1) or ""
        properties += extension.group(2)
    synthesized = []
    for words, kind, name in re.findall(r"^@property \(([^)]*)\) *(.*?)(\w+);", properties, re.M):
        is_named = re.search(rf"@synthesize {name}\b", implementation.group(1))
        has = [re.search(rf"^- *\([^)]*\) *{accessor}\b", implementation.group(1), re.M)
               for accessor in (name, f"set{name[0].upper()}{name[1:]}")]
        if not is_named and has[0] and (has[1] or "readonly" in words):
            continue
        if not re.search(rf"\b_{name};", variables):
            variables += f"\n{kind}_{name};"
        if not is_named:
            synthesized.append(f"@synthesize {name} = _{name};")
    opening = f"@implementation {of}\n"
    source = source.replace(opening, opening + "\n".join(synthesized) + "\n", 1)
    if extension:
        source = source.replace(extension.group(0), f"@interface {of} (){extension.group(2)}@end")
    replacement = f"@interface {of} : NSObject {{{variables}\n}}{interface.group(2)}@end"
    return header.replace(interface.group(0), replacement), source


BUILDERS = {"bench-sqliteswift": build_sqliteswift, "mmkv": build_mmkv, "fmdb": build_fmdb}
