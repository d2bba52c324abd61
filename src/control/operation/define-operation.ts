import { z } from "zod";
import { Download } from "./download.ts";
import { fieldError } from "./refusals.ts";
import type { Operation, OperationCall, OperationInput } from "./operation.ts";

export type NoFields = z.ZodObject<Record<never, never>, z.core.$strict>;

export interface OperationDefinition<
  Query extends z.ZodObject,
  Body extends z.ZodObject,
  Answer extends z.ZodType,
> extends Omit<Operation, "query" | "body" | "answer" | "run" | "status"> {
  /** Default: 200. */
  readonly status?: Operation["status"];
  /** Strict, as `body`: unknown fields are refused. */
  readonly query?: Query;
  readonly body?: Body;
  /** Copies only the fields it names, so that nothing else slips into an answer. */
  readonly answer: Answer;
  run(
    input: TypedInput<z.output<Query>, z.output<Body>>,
  ): Promise<z.input<Answer>> | z.input<Answer> | Download;
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
      return answer instanceof Download ? answer : definition.answer.parse(answer);
    },
  };
}

/** Reads the query or the body; without a schema, no field is accepted. Throws 400. */
function readFields<Schema extends z.ZodObject>(
  schema: Schema | undefined,
  value: unknown,
): z.output<Schema>;
function readFields(schema: z.ZodObject | undefined, value: unknown): unknown {
  const fields = value ?? {};
  const result = (schema ?? z.strictObject({})).safeParse(fields);
  if (result.success) return result.data;
  throw fieldError(result.error, fields);
}
