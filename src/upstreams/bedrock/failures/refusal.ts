import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";

/** A request that this model does not support; another may. `param` is the caller's field. */
export function unsupported(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure({ kind: "unsupported", param, message });
}

/** A request that is invalid as it was sent. `param` is the caller's field. */
export function invalidRequest(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure({ kind: "invalid-request", param, message });
}
