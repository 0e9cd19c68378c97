# liblbfgs, which comes without a CMake target: EspalierNumerics::lbfgs, where it is.
find_library(ESPALIER_LBFGS lbfgs NO_CACHE)
if(ESPALIER_LBFGS AND NOT TARGET EspalierNumerics::lbfgs)
    add_library(EspalierNumerics::lbfgs UNKNOWN IMPORTED)
    set_target_properties(EspalierNumerics::lbfgs PROPERTIES IMPORTED_LOCATION ${ESPALIER_LBFGS})
endif()
