import { z } from "zod";
import base from "./openapi-base.json";
import { isObject, type JsonObject } from "../../domain/json-object.ts";
import { operationErrors } from "./operation-errors.ts";
import type { OperationDescription } from "../operation/operation.ts";

/** OpenAPI 3.1, generated from the schemas that validate requests and answers. */
export function openApiDocument(operations: readonly OperationDescription[]): JsonObject {
  const schemas: Record<string, unknown> = {};
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    const path = (paths[operation.path] ??= {});
    path[operation.method.toLowerCase()] = describeOperation(operation, schemas);
  }
  const { components, ...rest } = base;
  return {
    ...rest,
    tags: [...new Set(operations.map(({ resource }) => resource))].map((name) => ({ name })),
    paths,
    components: { ...components, schemas: { ...schemas, ...components.schemas } },
  };
}

function describeOperation(
  operation: OperationDescription,
  schemas: Record<string, unknown>,
): JsonObject {
  const { id, resource, summary, description, roles, body } = operation;
  const permission = describePermission(operation);
  return {
    operationId: id,
    tags: [resource],
    summary,
    description: description === undefined ? permission : `${description}\n\n${permission}`,
    parameters: [
      ...pathParameters(operation),
      ...queryParameters(operation),
      ...headerParameters(operation),
    ],
    ...(roles.length === 0 ? { security: [] } : {}),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !body.safeParse({}).success,
            content: { "application/json": { schema: jsonSchema(body, schemas) } },
          },
        }),
    responses: {
      [operation.status]: describeAnswer(operation, schemas),
      ...errorResponses(operation),
    },
  };
}

function describePermission({ roles, scope }: OperationDescription): string {
  if (roles.length === 0) return "For everybody.";
  return `For: ${roles.join(", ").replaceAll("_", " ")}. Scope of a token: ${scope}.`;
}

function headerParameters(operation: OperationDescription): readonly JsonObject[] {
  const { method, isSignIn, downloads, roles } = operation;
  const isRepeatable = isSignIn !== true && downloads === undefined;
  if (method === "GET") return [];
  return [
    ...(!isRepeatable ? [] : [{ $ref: "#/components/parameters/idempotencyKey" }]),
    ...(roles.length === 0 ? [] : [{ $ref: "#/components/parameters/csrfToken" }]),
  ];
}

function pathParameters({ path }: OperationDescription): readonly JsonObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters({ query }: OperationDescription): readonly JsonObject[] {
  if (query === undefined) return [];
  const made = z.toJSONSchema(query, { io: "input", override: simplify });
  return Object.entries(asPlain(made.properties ?? {})).map(([name, schema]) => {
    const { description, ...rest } = isObject(schema) ? schema : {};
    return {
      name,
      in: "query",
      required: (made.required ?? []).includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

function describeAnswer(
  operation: OperationDescription,
  schemas: Record<string, unknown>,
): JsonObject {
  const { status, answer, downloads, hasSecret } = operation;
  if (answer === undefined) {
    return { description: "Go there.", headers: { location: headerRef("location") } };
  }
  const content =
    downloads === undefined
      ? { "application/json": { schema: jsonSchema(answer, schemas) } }
      : Object.fromEntries(
          downloads.map((type) => [
            type,
            { schema: isJson(type) ? jsonSchema(answer, schemas) : { type: "string" } },
          ]),
        );
  const secret = hasSecret === true ? "Contains a secret that is shown only once." : "";
  return {
    description: `${status === 201 ? "It is made." : "Done."}${secret}`,
    ...answerHeaders(operation),
    content,
  };
}

const isJson = (type: string): boolean => type === "application/json";

function answerHeaders({ method, isSignIn, downloads }: OperationDescription): JsonObject {
  if (isSignIn === true || downloads !== undefined || method === "GET") return {};
  return { headers: { "idempotent-replayed": headerRef("idempotentReplayed") } };
}

function headerRef(name: string): JsonObject {
  return { $ref: `#/components/headers/${name}` };
}

/** One response per status, because OpenAPI cannot distinguish two errors of one status. */
function errorResponses(operation: OperationDescription): JsonObject {
  const byStatus = Map.groupBy(operationErrors(operation), ({ status }) => status);
  return Object.fromEntries(
    [...byStatus].map(([status, rows]) => [
      status,
      {
        description: rows.map(({ code, when }) => `- \`${code ?? "null"}\`: ${when}`).join("\n"),
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    ]),
  );
}

/** A schema; the schemas that it names are added to the document's. */
function jsonSchema(schema: z.ZodType, schemas: Record<string, unknown>): JsonObject {
  const made = z.toJSONSchema(schema, { io: "input", override: simplify });
  const { $schema: _version, $defs = {}, ...rest } = asPlain(made);
  Object.assign(schemas, $defs);
  return rest;
}

function simplify({ jsonSchema: made }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  // The pattern of a date only repeats its format, at length.
  if (made.format === "date-time") delete made.pattern;
  if (made.maximum === Number.MAX_SAFE_INTEGER) delete made.maximum;
  if (made.minimum === Number.MIN_SAFE_INTEGER) delete made.minimum;
}

/**
 * The same schema for the document: it refers to definitions of the document, and uses only what
 * validators and client generators in other languages understand.
 */
function asPlain(made: object): JsonObject;
function asPlain(made: object): unknown {
  const text = JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/');
  const shared: unknown = JSON.parse(text, plainPart);
  return shared;
}

/** Called for every value, the innermost first. */
function plainPart(name: string, value: unknown): unknown {
  if (isAnyJsonName(name)) return undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if ("$ref" in value && isAnyJsonName(String(value.$ref))) return {};
  if (!("type" in value) || !Array.isArray(value.type) || value.type.length < 3) return value;
  // Generators take one type, which may also be null.
  const { type, ...rest } = value;
  return { ...rest, anyOf: type.map((each: unknown) => ({ type: each })) };
}

/** Arbitrary JSON is a schema without a name that refers to itself. */
function isAnyJsonName(name: string): boolean {
  return /(?:^|\/)__schema[0-9]+$/.test(name);
}
