import { textOf, type JsonObject } from "../../shared/json-fields.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import type { DocumentBlock, DocumentFormat } from "../encode/converse-body.ts";
import { byteLengthOf, parseDataUrl, soundBase64, type DataUrl } from "./data-url.ts";
import type { DocumentNames } from "./document-names.ts";
import { invalidRequest, unsupported } from "../failures/refusal.ts";

/** The provider's limit: 4.5 MB. */
const mostBytes = 4_500_000;

export interface DocumentContext {
  readonly model: BedrockModel;
  readonly names: DocumentNames;
}

/**
 * A document from the inline `file` of a part; the media type or the file name determines its
 * format.
 */
export function encodeDocument(
  file: JsonObject,
  { model, names }: DocumentContext,
  path: string,
): DocumentBlock {
  if (!model.capabilities.documents) {
    throw unsupported(path, `${path}: this model does not accept files. Send the text itself.`);
  }
  const fileData = textOf(file["file_data"]);
  if (fileData === undefined) {
    throw unsupported(
      path,
      `${path}: file ids are not supported. Send the file itself in file_data, as a ` + "data URL.",
    );
  }
  const filename = textOf(file["filename"]) ?? "";
  const data = read(fileData);
  if (data === undefined) {
    throw invalidRequest(path, `${path}: file_data is not a data URL with valid base64 data.`);
  }
  if (byteLengthOf(data.base64) > mostBytes) {
    throw invalidRequest(path, `${path}: a file may have ${mostBytes} bytes at most.`);
  }
  const format = formatOf(data.mediaType, filename);
  if (format === undefined) {
    throw invalidRequest(
      path,
      `${path}: the kind of the file is unknown. Send PDF, CSV, Word, Excel, HTML, plain text ` +
        "or Markdown, and say so in the media type of the data URL or in the filename.",
    );
  }
  return {
    document: { name: names.nameFor(filename), format, source: { bytes: data.base64 } },
  };
}

/** Plain base64, without a `data:` address, is also common. */
function read(fileData: string): DataUrl | undefined {
  if (/^data:/i.test(fileData)) return parseDataUrl(fileData);
  const base64 = soundBase64(fileData);
  return base64 === undefined ? undefined : { mediaType: "", base64 };
}

function formatOf(mediaType: string, filename: string): DocumentFormat | undefined {
  const dot = filename.lastIndexOf(".");
  const extension = dot < 0 ? "" : filename.slice(dot + 1).toLowerCase();
  return byMediaType.get(mediaType) ?? byExtension.get(extension) ?? ofText(mediaType);
}

/** Source code and similar text, which the model reads as it is. */
function ofText(mediaType: string): DocumentFormat | undefined {
  return mediaType.startsWith("text/") || mediaType === "application/json" ? "txt" : undefined;
}

const office = "application/vnd.openxmlformats-officedocument";

const byMediaType: ReadonlyMap<string, DocumentFormat> = new Map<string, DocumentFormat>([
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["application/msword", "doc"],
  [`${office}.wordprocessingml.document`, "docx"],
  ["application/vnd.ms-excel", "xls"],
  [`${office}.spreadsheetml.sheet`, "xlsx"],
  ["text/html", "html"],
  ["text/markdown", "md"],
]);

/** For plain text the extension decides first: Markdown and CSV are often sent as plain text. */
const byExtension: ReadonlyMap<string, DocumentFormat> = new Map<string, DocumentFormat>([
  ["pdf", "pdf"],
  ["csv", "csv"],
  ["doc", "doc"],
  ["docx", "docx"],
  ["xls", "xls"],
  ["xlsx", "xlsx"],
  ["html", "html"],
  ["htm", "html"],
  ["txt", "txt"],
  ["text", "txt"],
  ["log", "txt"],
  ["json", "txt"],
  ["md", "md"],
  ["markdown", "md"],
]);
