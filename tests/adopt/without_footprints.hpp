/*
 * ACS_LAUNCH without a footprint, as long as acs.h has none: the tests of acs-adopt compile what it wrote with it.
 */
#include <acs.h>

namespace acs {
namespace detail {

template <class K, class... A, class G, class B>
acs_op launch(acs_context *context, const acs_site *site, site_cache &cache, const acs_attributes &attributes, K &&kernel,
              const G &grid, const B &block, uint64_t shared_bytes, arg_refs<A...> args)
{
    return launch(context, site, cache, attributes, kernel, grid, block, shared_bytes, std::move(args), ACS_USES_ANY);
}

} // namespace detail
} // namespace acs
