import { z } from "zod";

/** A part of the OpenAPI document. */
export interface Part {
  readonly [name: string]: unknown;
}

export interface DocumentedParameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Part;
}

export interface DocumentedOperation {
  readonly operationId: string;
  /** As in the table of routes: `GET /admin/v1/keys/{id}`. */
  readonly route: string;
  readonly method: string;
  readonly path: string;
  readonly query: readonly DocumentedParameter[];
  /** Of the JSON body, with the document's other schemas at hand; undefined without a body. */
  readonly body: Part | undefined;
  /** By status, then by content type. */
  readonly answers: ReadonlyMap<number, ReadonlyMap<string, Part>>;
}

/** The document that a running gateway serves. */
export async function readDocument(adminUrl: string): Promise<readonly DocumentedOperation[]> {
  const response = await fetch(`${adminUrl}/admin/v1/openapi.json`);
  const document = (await response.json()) as Part;
  const paths = partOf(document, "paths");
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods as Part).map(([method, operation]) =>
      readOperation(document, { path, method: method.toUpperCase(), operation: operation as Part }),
    ),
  );
}

interface Located {
  readonly path: string;
  readonly method: string;
  readonly operation: Part;
}

function readOperation(document: Part, { path, method, operation }: Located): DocumentedOperation {
  const parameters = (operation["parameters"] ?? []) as readonly Part[];
  const found = parameters.map((parameter) => resolve(document, parameter));
  const body = schemasOf(document, operation["requestBody"] as Part | undefined);
  const answers = Object.entries(partOf(operation, "responses")).map(
    ([status, answer]) => [Number(status), schemasOf(document, answer as Part)] as const,
  );
  return {
    operationId: String(operation["operationId"]),
    route: `${method} ${path}`,
    method,
    path,
    query: found.filter((each) => each["in"] === "query") as unknown as DocumentedParameter[],
    body: body.get("application/json"),
    answers: new Map(answers),
  };
}

function resolve(document: Part, part: Part): Part {
  const reference = part["$ref"];
  if (typeof reference !== "string") return part;
  const names = reference.slice(2).split("/");
  return names.reduce<Part>((value, name) => partOf(value, name), document);
}

function partOf(part: Part, name: string): Part {
  const found = part[name];
  if (typeof found !== "object" || found === null) throw new Error(`the document has no ${name}`);
  return found as Part;
}

/** The schemas of a body or an answer by content type. */
function schemasOf(document: Part, part: Part | undefined): ReadonlyMap<string, Part> {
  const content = Object.entries((part?.["content"] ?? {}) as Record<string, Part>);
  const $defs = definitionsOf(document);
  return new Map(
    content.map(([type, media]) => [type, { ...relocate(partOf(media, "schema")), $defs }]),
  );
}

function definitionsOf(document: Part): Part {
  return relocate(partOf(partOf(document, "components"), "schemas"));
}

/** With references as JSON Schema alone has them. */
function relocate(part: Part): Part {
  const text = JSON.stringify(part).replaceAll("#/components/schemas/", "#/$defs/");
  return JSON.parse(text) as Part;
}

/** Says whether a value fits a schema of the document. */
export function readerOf(schema: Part): z.ZodType {
  return z.fromJSONSchema(schema);
}
