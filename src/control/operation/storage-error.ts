import { GatewayError } from "../../domain/errors/gateway-error.ts";
import {
  AlreadyExists,
  InvalidCursor,
  RevisionConflict,
  StillInUse,
  StorageUnavailable,
} from "../../store/errors.ts";

/** What storage threw, as an answer of the control plane; anything else stays as it is. */
export function fromStorageError(error: unknown): unknown {
  if (error instanceof StorageUnavailable) {
    return new GatewayError("storage_unavailable", {
      message: "The database cannot be used now. Please retry your request.",
      headers: { "retry-after": "1" },
      cause: error,
    });
  }
  if (error instanceof AlreadyExists) {
    return new GatewayError("already_exists", {
      message: "Something with this name is there already. Choose another.",
      cause: error,
    });
  }
  if (error instanceof RevisionConflict) {
    return new GatewayError("revision_conflict", {
      message: "It was changed since the revision you named. Read it again, then repeat.",
      param: "revision",
      cause: error,
    });
  }
  if (error instanceof StillInUse) {
    return new GatewayError("still_in_use", {
      message: "Something still belongs to it. Remove that first.",
      cause: error,
    });
  }
  if (error instanceof InvalidCursor) {
    return new GatewayError("invalid_value", {
      message: "Invalid value for 'cursor': use the `next_cursor` of the page before, unchanged.",
      param: "cursor",
      cause: error,
    });
  }
  return error;
}
