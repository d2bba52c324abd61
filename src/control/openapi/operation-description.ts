import type { z } from "zod";
import type { Operation } from "../operation/operation.ts";

/** What the documents say of a request: of an operation, or of signing in, which is none. */
export interface OperationDescription extends Omit<Operation, "run" | "status" | "answer"> {
  readonly status: Operation["status"] | 302;
  /** Undefined: the answer has no body. */
  readonly answer: z.ZodType | undefined;
  /** Of signing in: it takes no idempotency key, and roles are empty where nobody is known yet. */
  readonly isSignIn?: boolean;
}
