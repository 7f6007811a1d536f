# version.h: the version, and the git commit and difference that the build was made from, refreshed at each build.
add_custom_target(pl_version_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${PROJECT_BINARY_DIR}/generated/pl_version.h
          -DVERSION=${PROJECT_VERSION} -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/pl_version.h)
foreach(floor pl_results pl_runners pipelag)
  add_dependencies(${floor} pl_version_header)
  target_include_directories(${floor} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endforeach()
