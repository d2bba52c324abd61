import type { z } from "zod";
import type { AdminCall } from "../../edge/dispatch/route.ts";
import type { Role, Scope } from "../../domain/accounts/user.ts";
import type { ControlTransaction } from "../../store/control-store.ts";

/**
 * One request of the control plane: who may make it, what it takes and what it answers. Routes, the
 * OpenAPI document, the reference page and the matrix of permissions are made from the list of
 * these.
 */
export interface Operation {
  /** Unique, in camel case: `rotateKey`. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** With `{id}` and the like: `/admin/v1/keys/{id}/rotate`. */
  readonly path: string;
  /** The resource, as a heading: `Keys`. */
  readonly resource: string;
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  readonly roles: readonly Role[];
  readonly scope: Scope;
  /** Of the answer when all went well. */
  readonly status: 200 | 201;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  readonly answer: z.ZodType;
  /** True when the answer holds a secret: it is then never cached and replayed for a short time. */
  readonly hasSecret?: boolean;
  /** Content types of an answer that is a long text: `run` then gives a `Download`. */
  readonly downloads?: readonly string[];
  /** Reads query and body by their schemas, does the work and gives what `answer` lets through. */
  run(input: OperationInput): Promise<unknown>;
}

/** What the documents say of a request: of an operation, or of signing in, which is none. */
export interface OperationDescription extends Omit<Operation, "run" | "status" | "answer"> {
  readonly status: Operation["status"] | 302;
  /** Undefined: the answer has no body. */
  readonly answer: z.ZodType | undefined;
  /** Of signing in: it takes no idempotency key, and roles are empty where nobody is known yet. */
  readonly isSignIn?: boolean;
}

/** A request before its schemas have read it. */
export interface OperationInput {
  readonly call: OperationCall;
  readonly parameters: Readonly<Record<string, string>>;
  /** Texts by name; undefined when there are none. */
  readonly query: unknown;
  /** Parsed JSON; undefined when there is none. */
  readonly body: unknown;
}

/** Who asks, for permissions and the audit. The command line makes one without HTTP. */
export type OperationCall = Pick<AdminCall, "id" | "principal" | "signal"> & {
  /** Undefined without a connection. */
  readonly address: string | undefined;
  /** Present when the request may be asked again under its idempotency key. */
  readonly replies?: ReplyKeeper | undefined;
  /** True for the caller's own session and password, which a disabled account does not end. */
  readonly isSignIn?: boolean;
};

/** Keeps the answer to a request in the transaction of the change that it tells of. */
export interface ReplyKeeper {
  /** Throws when another process has done the request since it was looked up. */
  expectNone(transaction: ControlTransaction): Promise<void>;
  /** `answer` as `run` gives it, or before the answer's schema has read it. */
  keep(transaction: ControlTransaction, answer: unknown): Promise<void>;
}
