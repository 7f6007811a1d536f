# Compiler options shared by every target: pl_options.
add_library(pl_options INTERFACE)
target_include_directories(pl_options INTERFACE ${PROJECT_SOURCE_DIR})
target_include_directories(pl_options SYSTEM INTERFACE ${RANDOM123_INCLUDE})
target_compile_definitions(pl_options INTERFACE _GNU_SOURCE)
# -ffp-contract=off: a fused multiply-add is written where it is wanted, so that bits do not depend on what the compiler happens to fuse.
target_compile_options(pl_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wvla -Wundef -Wformat=2
  -fno-omit-frame-pointer -ffp-contract=off -fno-math-errno> $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
if(PIPELAG_WERROR)
  target_compile_options(pl_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(PIPELAG_ASAN)
  target_compile_options(pl_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=address,undefined -fno-sanitize-recover=all>)
  target_link_options(pl_options INTERFACE -fsanitize=address,undefined)
endif()
if(PIPELAG_TSAN)
  target_compile_options(pl_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=thread>)
  target_link_options(pl_options INTERFACE -fsanitize=thread)
endif()
