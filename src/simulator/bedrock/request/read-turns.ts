import type { Attachment, Turn } from "../../answer/prompt.ts";
import { isRecord, listOf, recordOf, stringOf, type JsonRecord } from "../../read-json.ts";

/** The conversation of a checked body. Tool results become turns of their own. */
export function readTurns(body: JsonRecord): Turn[] {
  const system = listOf(body["system"])
    .map((block) => recordOf(block))
    .filter((block) => block["cachePoint"] === undefined)
    .map((block): Turn => plainTurn("system", textOf(block)));
  const callNames = new Map<string, string>();
  const turns = listOf(body["messages"]).flatMap((message) => {
    const { role, content } = recordOf(message);
    const blocks = listOf(content).map(recordOf);
    return role === "assistant"
      ? [readAssistant(blocks, callNames)]
      : [...readResults(blocks, callNames), ...readUser(blocks)];
  });
  return [...system, ...turns];
}

function readAssistant(blocks: readonly JsonRecord[], callNames: Map<string, string>): Turn {
  const toolCalls = blocks.flatMap(({ toolUse }) => {
    if (!isRecord(toolUse)) return [];
    const name = stringOf(toolUse["name"]);
    callNames.set(stringOf(toolUse["toolUseId"]), name);
    return [{ name, input: JSON.stringify(toolUse["input"]) }];
  });
  return { ...plainTurn("assistant", joinedText(blocks)), toolCalls };
}

function readResults(
  blocks: readonly JsonRecord[],
  callNames: ReadonlyMap<string, string>,
): Turn[] {
  return blocks.flatMap(({ toolResult }): Turn[] => {
    if (!isRecord(toolResult)) return [];
    const content = listOf(toolResult["content"]).map(recordOf);
    const name = callNames.get(stringOf(toolResult["toolUseId"]));
    const turn = plainTurn("tool", joinedText(content));
    return [{ ...turn, name, attachments: content.flatMap(readAttachment) }];
  });
}

/** Empty if the message has only tool results. */
function readUser(blocks: readonly JsonRecord[]): Turn[] {
  const own = blocks.filter(
    (block) => block["toolResult"] === undefined && block["cachePoint"] === undefined,
  );
  if (own.length === 0) return [];
  return [{ ...plainTurn("user", joinedText(own)), attachments: own.flatMap(readAttachment) }];
}

function plainTurn(role: Turn["role"], text: string): Turn {
  return { role, text, name: undefined, attachments: [], toolCalls: [] };
}

function joinedText(blocks: readonly JsonRecord[]): string {
  return blocks
    .map(textOf)
    .filter((text) => text !== "")
    .join("\n");
}

function textOf({ text, json, guardContent, citationsContent }: JsonRecord): string {
  if (json !== undefined) return JSON.stringify(json);
  if (isRecord(guardContent)) return stringOf(recordOf(guardContent["text"])["text"]);
  if (!isRecord(citationsContent)) return stringOf(text);
  return listOf(citationsContent["content"])
    .map((part) => stringOf(recordOf(part)["text"]))
    .join("");
}

function readAttachment({ image, document, video }: JsonRecord): Attachment[] {
  if (isRecord(image)) return [attachment("image", image, "image")];
  if (isRecord(video)) return [attachment("file", video, "video")];
  if (!isRecord(document)) return [];
  return [attachment("file", document, documentType(stringOf(document["format"])))];
}

function attachment(kind: Attachment["kind"], block: JsonRecord, type: string): Attachment {
  const { bytes } = recordOf(block["source"]);
  const format = stringOf(block["format"]);
  return {
    kind,
    mediaType: type.includes("/") ? type : `${type}/${format}`,
    sizeBytes: typeof bytes === "string" ? Buffer.byteLength(bytes, "base64") : undefined,
    name: stringOf(block["name"]) || undefined,
  };
}

const documentTypes: Readonly<Record<string, string>> = {
  csv: "text/csv",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  html: "text/html",
  md: "text/markdown",
  pdf: "application/pdf",
  xls: "application/vnd.ms-excel",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

function documentType(format: string): string {
  return documentTypes[format] ?? "text/plain";
}
