import { RefusedRows, StorageUnavailable } from "../../store/errors.ts";

/**
 * The other process has ended, does not read, or did not answer in time. Code that asks for stored
 * data treats this like an unavailable database, which may recover.
 */
export class LinkLost extends StorageUnavailable {
  override readonly name = "LinkLost";
  /** Whether a message had arrived only partly. */
  isCut = false;
}

/** An error as it is sent. Its class is kept where callers depend on it. */
interface ErrorFacts {
  readonly name: string;
  readonly message: string;
}

export function factsOf(error: unknown): ErrorFacts {
  if (error instanceof RefusedRows) return { name: "RefusedRows", message: error.message };
  if (error instanceof StorageUnavailable) {
    return { name: "StorageUnavailable", message: error.message };
  }
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: "Error", message: String(error) };
}

export function errorOf(facts: unknown): Error {
  const { name, message } = isFacts(facts) ? facts : { name: "Error", message: "unknown failure" };
  switch (name) {
    case "RefusedRows":
      return new RefusedRows(message);
    case "StorageUnavailable":
      return new StorageUnavailable(message);
    default:
      return new Error(message);
  }
}

function isFacts(value: unknown): value is ErrorFacts {
  return (
    typeof value === "object" &&
    value !== null &&
    "name" in value &&
    typeof value.name === "string" &&
    "message" in value &&
    typeof value.message === "string"
  );
}
