# Run by CPack before it packs: what Debian asks of each package beside its own files.
set(package_runtime libfast-c0)
set(package_dev libfast-dev)
set(package_tools fast-tools)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, if it is set

function(compress file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component runtime dev tools)
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
  if(NOT EXISTS ${root})
    message(FATAL_ERROR "debian_files: ${root} is missing")
  endif()
  set(doc ${root}/share/doc/${package_${component}})
  file(MAKE_DIRECTORY ${doc})
  configure_file(${CPACK_FAST_SOURCE_DIR}/deploy/debian/copyright ${doc}/copyright COPYONLY)
  file(WRITE ${doc}/changelog
       "fast (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * See changes.gz of fast-tools.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress(${doc}/changelog)
  file(GLOB pages ${root}/share/man/man1/*.1)
  foreach(page IN LISTS pages)
    compress(${page})
  endforeach()
  if(component STREQUAL tools)
    configure_file(${CPACK_FAST_SOURCE_DIR}/CHANGELOG.md ${doc}/changes COPYONLY)
    compress(${doc}/changes)
    configure_file(${CPACK_FAST_SOURCE_DIR}/third_party/vega/LICENSES.txt ${doc}/LICENSES-vega.txt COPYONLY)
  endif()
  file(CHMOD_RECURSE ${root}/share FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
       DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
