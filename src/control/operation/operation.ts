import { z } from "zod";
import type { AdminCall } from "../../edge/dispatch/route.ts";
import type { Role, Scope } from "../../domain/principal.ts";
import type { ControlTransaction } from "../../store/repositories/control-store.ts";
import { parseFields } from "./refusals.ts";

/**
 * One request of the control plane: its permission, input and answer. Routes, the OpenAPI document,
 * the reference page and the permission matrix are generated from the list of operations.
 */
export interface Operation {
  /** Unique, in camel case: `rotateKey`. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** A pattern such as `/admin/v1/keys/{id}/rotate`. */
  readonly path: string;
  /** The resource, as a heading: `Keys`. */
  readonly resource: string;
  readonly summary: string;
  readonly description?: string;
  readonly roles: readonly Role[];
  readonly scope: Scope;
  readonly status: 200 | 201;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  readonly answer: z.ZodType;
  /** Whether the answer holds a secret, so that it is never cached and only briefly replayed. */
  readonly hasSecret?: boolean;
  /** Content types of a long text, for which `run` returns a `Response`. */
  readonly downloads?: readonly string[];
  /** Parses query and body, does the work and returns what the answer's schema allows. */
  run(input: OperationInput): Promise<unknown>;
}

/** The documentation of a request: of an operation or of signing in. */
export interface OperationDescription extends Omit<Operation, "run" | "status" | "answer"> {
  readonly status: Operation["status"] | 302;
  /** Undefined: the answer has no body. */
  readonly answer: z.ZodType | undefined;
  /** Set for signing in, which takes no idempotency key and may have no roles yet. */
  readonly isSignIn?: boolean;
}

export interface OperationInput {
  readonly call: OperationCall;
  readonly parameters: Readonly<Record<string, string>>;
  /** Texts by name; undefined when there are none. */
  readonly query: unknown;
  /** Parsed JSON; undefined when there is none. */
  readonly body: unknown;
}

/** The caller, for permissions and the audit. The command line makes one without HTTP. */
export type OperationCall = Pick<AdminCall, "id" | "principal" | "signal"> & {
  /** Undefined without a connection. */
  readonly address: string | undefined;
  /** Set when the request has an idempotency key. */
  readonly replies?: ReplyKeeper | undefined;
  /** True for the caller's own session and password, which remain usable in a disabled account. */
  readonly isSignIn?: boolean;
};

/** Stores the answer to a request in the transaction of its change. */
export interface ReplyKeeper {
  /** Throws when another process has run the request since it was looked up. */
  expectNone(transaction: ControlTransaction): Promise<void>;
  /** `answer` is the result of `run`, or the value before the answer's schema. */
  keep(transaction: ControlTransaction, answer: unknown): Promise<void>;
}

export interface Permission {
  readonly roles: readonly Role[];
  readonly scope: Scope;
}

/** The combinations of roles that operations allow. `scope.ts` limits them to accounts. */
export const permissions = {
  /** All roles, each within its account scope. */
  read: { roles: ["operator", "account_holder", "auditor"], scope: "read" },
  /** Operators, and account holders in their account. */
  manage: { roles: ["operator", "account_holder"], scope: "write" },
  operate: { roles: ["operator"], scope: "write" },
  /** About the gateway itself, which concerns only operators. */
  observe: { roles: ["operator"], scope: "read" },
  oversee: { roles: ["operator", "auditor"], scope: "read" },
} as const satisfies Record<string, Permission>;

export type NoFields = z.ZodObject<Record<never, never>, z.core.$strict>;

export interface OperationDefinition<
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Answer extends z.ZodType,
> extends Omit<Operation, "query" | "body" | "answer" | "run" | "status"> {
  readonly status?: Operation["status"];
  /** Strict, as `body`: unknown fields are refused. */
  readonly query?: Query;
  readonly body?: Body;
  /** Copies only the fields it names, so that nothing else slips into an answer. */
  readonly answer: Answer;
  run(
    input: TypedInput<z.output<Query>, z.output<Body>>,
  ): Promise<z.input<Answer> | Response> | z.input<Answer> | Response;
}

export interface TypedInput<Query, Body> {
  readonly call: OperationCall;
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
}

/** An operation whose input and answer pass through its schemas. */
export function defineOperation<
  Answer extends z.ZodType,
  Query extends z.ZodObject = NoFields,
  Body extends z.ZodObject = NoFields,
>(definition: OperationDefinition<Query, Body, Answer>): Operation {
  return {
    status: 200,
    ...definition,
    async run({ call, parameters, query, body }: OperationInput): Promise<unknown> {
      const typedQuery = readFields(definition.query, query);
      const typedBody = readFields(definition.body, body);
      const input = { call, parameters, query: typedQuery, body: typedBody };
      const answer: unknown = await definition.run(input);
      return answer instanceof Response ? answer : definition.answer.parse(answer);
    },
  };
}

/** Reads the query or the body; without a schema, no field is accepted. Throws 400. */
function readFields<Schema extends z.ZodObject>(
  schema: Schema | undefined,
  value: unknown,
): z.output<Schema>;
function readFields(schema: z.ZodObject | undefined, value: unknown): unknown {
  return parseFields(schema ?? z.strictObject({}), value ?? {});
}
