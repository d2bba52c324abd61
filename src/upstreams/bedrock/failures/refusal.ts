import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";

/** What this model cannot be asked, though another target might. `param` is the caller's field. */
export function unsupported(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure({ kind: "unsupported", param, message });
}

/** What makes no sense as it was sent. `param` is the caller's field. */
export function invalidRequest(param: string, message: string): UpstreamFailure {
  return new UpstreamFailure({ kind: "invalid-request", param, message });
}
