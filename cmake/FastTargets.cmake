# House rules for every target: language level, warnings, sanitizers, where binaries go; and the helpers
# fast_library, fast_program with which lib/, examples/, bench/ and tests/ declare theirs.
include(GNUInstallDirs)

if(NOT CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(FAST_CCACHE ccache)
if(FAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FAST_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${FAST_CCACHE})
endif()

add_library(fast_house INTERFACE)
target_compile_features(fast_house INTERFACE cxx_std_20)
target_compile_options(fast_house INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra $<$<BOOL:${FAST_WERROR}>:-Werror>>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wunused-const-variable=1>
  # In a unity build, sources are included as headers are: their unnamed namespaces are no fault.
  $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-subobject-linkage>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra $<$<BOOL:${FAST_WERROR}>:-Werror=all-warnings>>)
# A program that uses threads only is not to load MPI, whose hooks the thread sanitizer does not bear.
target_link_options(fast_house INTERFACE -Wl,--as-needed)
if(FAST_SANITIZE)
  target_compile_options(fast_house INTERFACE -fsanitize=${FAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(FAST_SANITIZE_NOT)
    target_compile_options(fast_house INTERFACE -fno-sanitize=${FAST_SANITIZE_NOT})
  endif()
  target_link_options(fast_house INTERFACE -fsanitize=${FAST_SANITIZE})
endif()
if(FAST_CARRY_LIBSTDCXX)
  add_library(fast_arc4random STATIC ${PROJECT_SOURCE_DIR}/cmake/arc4random.c)
  target_link_options(fast_house INTERFACE -static-libstdc++ -Wl,-u,arc4random)
  target_link_libraries(fast_house INTERFACE fast_arc4random)
endif()

# Of code that runs once, or waits for files: it compiles in two thirds of the time.
set(fast_quick_to_compile $<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>>:-O1>)

# fast_library(NAME [SHARED] PUBLIC deps PRIVATE deps): target fast_NAME, alias fast::NAME, component NAME.
# fast_library(NAME INTERFACE deps): the same of headers only.
function(fast_library name)
  cmake_parse_arguments(arg "SHARED" "" "PUBLIC;PRIVATE;INTERFACE" ${ARGN})
  set(target fast_${name})
  if(arg_INTERFACE)
    add_library(${target} INTERFACE)
    target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} INTERFACE ${arg_INTERFACE})
  else()
    if(arg_SHARED)
      add_library(${target} SHARED)
    else()
      add_library(${target})
    endif()
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include)
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:fast_house>)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib)
  endif()
  add_library(fast::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ${FAST_BUILD_TESTS})
  install(TARGETS ${target} EXPORT fast_${name}_targets
          ARCHIVE COMPONENT dev
          LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev
          FILE_SET HEADERS COMPONENT dev)
  set_property(GLOBAL APPEND PROPERTY FAST_COMPONENTS ${name})
endfunction()

# fast_header_only(NAME TARGET): target NAME has the include directories of an imported target, but neither its library
# nor its definitions. (tomlplusplus::tomlplusplus asks for the compiled library, whose assertions differ.)
function(fast_header_only name target)
  add_library(${name} INTERFACE)
  target_include_directories(${name} SYSTEM INTERFACE $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
endfunction()

# In a unity build for tests or Python, the sources of a folder that call MPI are one unit. Programs that do not need them load
# MPI then, which installed ones are not to do, and which the thread sanitizer does not bear.
function(fast_folder_units target)
  if(FAST_SANITIZE MATCHES thread OR NOT (FAST_BUILD_TESTS OR FAST_BUILD_PYTHON))
    return()
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/lib OUTPUT_VARIABLE path)
    string(REGEX REPLACE "^([^/]+/[^/]+)/.*" "\\1" folder ${path})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    if(folder MATCHES "_cpp$")
      get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    endif()
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
endfunction()

# fast_module(NAME SOURCES ... HEADERS ...): adds a module's files to target fast_NAME. SOURCES are relative to the
# module, HEADERS to include/; each header is checked to compile alone (all_verify_interface_header_sets).
function(fast_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;HEADERS" ${ARGN})
  list(TRANSFORM arg_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/)
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  get_target_property(type fast_${name} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL INTERFACE_LIBRARY)
    set(scope INTERFACE)
  endif()
  # In a unity build a module is one unit; of the modules that call MPI each folder is one.
  get_filename_component(module ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(arg_SOURCES AND module MATCHES "^(mpi|exchange)$")
    fast_folder_units(fast_${name} ${arg_SOURCES})
  elseif(arg_SOURCES)
    set_source_files_properties(${arg_SOURCES} TARGET_DIRECTORY fast_${name} PROPERTIES UNITY_GROUP ${module})
    set_target_properties(fast_${name} PROPERTIES UNITY_BUILD_MODE GROUP)
  endif()
  target_sources(fast_${name} PRIVATE ${arg_SOURCES} ${scope} FILE_SET HEADERS FILES ${arg_HEADERS})
endfunction()

# fast_program(NAME SOURCES ... LINK ...): a program in bin/.
function(fast_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} fast_house)
endfunction()
