# Files that name the places of an installation. Where that will be is known when it is made (cmake
# --install --prefix), and not before, so @prefix@ and @bindir@ in SOURCE.in are filled in then.
function(baton_install_filled source destination)
    get_filename_component(name "${source}" NAME_WLE)
    install(CODE "
        set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
        set(bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
        set(file \"\${CMAKE_INSTALL_PREFIX}/${destination}/${name}\")
        message(STATUS \"Installing: \$ENV{DESTDIR}\${file}\")
        configure_file(\"${source}\" \"\$ENV{DESTDIR}\${file}\" @ONLY NO_SOURCE_PERMISSIONS)
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${file}\")")
endfunction()
