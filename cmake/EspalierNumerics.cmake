# OpenBLAS and liblbfgs, which come without CMake targets: EspalierNumerics::openblas and EspalierNumerics::lbfgs, or neither.
# Of OpenBLAS the build for one thread is taken where Debian keeps it: results must not depend on the number of threads. All its
# builds go by one name at run time, so that programs must be told where this one is (ESPALIER_OPENBLAS_DIR).
find_library(ESPALIER_OPENBLAS openblas NO_CACHE
             PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
find_library(ESPALIER_OPENBLAS openblas NO_CACHE)
find_library(ESPALIER_LBFGS lbfgs NO_CACHE)
if(ESPALIER_OPENBLAS AND ESPALIER_LBFGS AND NOT TARGET EspalierNumerics::openblas)
    get_filename_component(ESPALIER_OPENBLAS_DIR ${ESPALIER_OPENBLAS} DIRECTORY)
    add_library(EspalierNumerics::openblas UNKNOWN IMPORTED)
    set_target_properties(EspalierNumerics::openblas PROPERTIES IMPORTED_LOCATION ${ESPALIER_OPENBLAS})
    add_library(EspalierNumerics::lbfgs UNKNOWN IMPORTED)
    set_target_properties(EspalierNumerics::lbfgs PROPERTIES IMPORTED_LOCATION ${ESPALIER_LBFGS})
endif()
