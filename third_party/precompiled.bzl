"""precompiled_header: what most sources of a tree include, compiled once per configuration."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def precompiled_copts(header):
    """Returns the options that put a precompiled header before a source.

    gcc alone has it: clang includes what a source names itself, and so finds what one forgot to include.

    Args:
      header: path of the header, FOLDER/NAME.h of a precompiled_header.
    """
    return select({
        "//:clang": [],
        "//conditions:default": ["-include", header, "-Winvalid-pch"],
    })

def precompiled_deps(label):
    """Returns what a target that uses the options above depends on.

    Args:
      label: the precompiled_header.
    """
    return select({
        "//:clang": [],
        "//conditions:default": [label],
    })

# Bazel 4 has both as globals.
# buildifier: disable=native-cc-common
# buildifier: disable=native-cc-info
def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    headers = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    context = headers.compilation_context

    # Its own name: gcc takes NAME.gch only from the folder in which it finds NAME first.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    ctx.actions.expand_template(template = ctx.file.src, output = header, substitutions = {})
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = compiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts +
                             ["-x", "c++-header"],
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = "c++-compile"),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "CppPrecompile",
        progress_message = "Compiling %s" % header.short_path,
    )
    own = CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([header, compiled])))
    return [
        DefaultInfo(files = depset([compiled])),
        cc_common.merge_cc_infos(cc_infos = [own, headers]),
    ]

# buildifier: disable=native-cc-info
precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(doc = "Options of the compiler: those of whatever includes it, or gcc does not take it."),
        "deps": attr.label_list(doc = "Libraries of the headers that it includes.", providers = [CcInfo]),
        "src": attr.label(doc = "The header.", allow_single_file = [".h"], mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    doc = "Makes NAME.h and NAME.h.gch; what depends on it says `-include FOLDER/NAME.h`. gcc(1), Precompiled Headers.",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
