"""unity_source: several sources compiled as one.

A source takes a second or two to compile, most of it for the headers that all sources of its folder include. As one,
they read these once: three times quicker.
"""

_JOIN = """
for source in $(SRCS); do
    echo "#line 1 \\"$$source\\""
    cat "$$source"
done > $@
"""

# Each file keeps its unnamed namespace apart from the others', in a namespace of its own.
_JOIN_APART = """
part=0
for source in $(SRCS); do
    part=$$((part + 1))
    echo "#line 1 \\"$$source\\""
    sed "s|^namespace {$$|namespace part_$$part { namespace {|; s|^}  // namespace$$|}}  // namespace|" "$$source"
done > $@
"""

def unity_source(name, srcs, apart = False, testonly = False):
    """Returns the sources of a target with those in .cc files as one.

    gcc alone compiles them so: clang compiles each by itself, and so finds what one forgot to include.

    Args:
      name: name of the target.
      srcs: its sources: files of its folder.
      apart: whether two of them may use a name for two things. What one has in an unnamed namespace it may then use
        only there.
      testonly: as that of the target.

    Returns:
      What to pass as `srcs`.
    """
    sources = [src for src in srcs if src.endswith(".cc")]
    if len(sources) < 2:
        return srcs
    one = name + "_unity"
    native.genrule(
        name = one,
        testonly = testonly,
        srcs = sources,
        outs = [one + ".cc"],
        cmd = _JOIN_APART if apart else _JOIN,
    )
    return select({
        "//:clang": srcs,
        "//conditions:default": [src for src in srcs if src not in sources] + [one + ".cc"],
    })
