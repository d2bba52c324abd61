import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { cleanMessage } from "../../shared/clean-message.ts";

/** No credentials: what happened, the message of the refusal, and what the operator can do. */
export function credentialFailure(
  what: string,
  { error, advice }: { readonly error: unknown; readonly advice: string },
): UpstreamFailure {
  const cause = error instanceof Error ? cleanMessage(error.message) : "unknown error";
  const message = `${what} (${cause}); ${advice}`;
  return new UpstreamFailure({ kind: "bad-credential", message }, { cause: error });
}
