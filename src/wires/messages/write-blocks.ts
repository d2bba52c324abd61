import type { ExtraFields } from "../../domain/chat/answer.ts";
import type {
  Block,
  CacheMark,
  DocumentBlock,
  ForeignBlock,
  ImageBlock,
  ReasoningBlock,
} from "../../domain/chat/conversation.ts";
import { imageFormatOf, parseDataUrl, soundBase64 } from "../../domain/chat/data-url.ts";
import { invalidRequest, unsupported } from "../../domain/errors/upstream-failure.ts";
import { isObject, type JsonObject, objectOf, textOf } from "../../domain/json-fields.ts";
import type { BlockWriter, SentCall, SentResult } from "../block-writer.ts";
import { fieldNames, fieldsBeyond } from "../fields.ts";

/** A block of a Messages request; it has a `type`. */
export type MessagesBlock = JsonObject;

export interface BlockRules {
  /** The caller speaks Messages too. */
  readonly isOwn: boolean;
  /** Fields and types of blocks that are sent on for such a caller. */
  readonly forwarded: ReadonlySet<string>;
  readonly images: boolean;
  readonly documents: boolean;
}

/** Writes the blocks of a conversation for the Messages API. */
export class MessagesWriter implements BlockWriter<MessagesBlock> {
  readonly #rules: BlockRules;

  constructor(rules: BlockRules) {
    this.#rules = rules;
  }

  text(text: string): MessagesBlock {
    return { type: "text", text };
  }

  textOf(sent: MessagesBlock): string | undefined {
    return sent["type"] === "text" ? textOf(sent["text"]) : undefined;
  }

  trimEnd(sent: MessagesBlock): MessagesBlock {
    const text = this.textOf(sent);
    return text === undefined ? sent : { ...sent, text: text.trimEnd() };
  }

  isResult({ type }: MessagesBlock): boolean {
    return type === "tool_result";
  }

  isImage({ type }: MessagesBlock): boolean {
    return type === "image";
  }

  isThought({ type }: MessagesBlock): boolean {
    return type === "thinking" || type === "redacted_thinking";
  }

  /** None for a blank text, which the API refuses. Throws `UpstreamFailure`. */
  input(block: Exclude<Block, ForeignBlock>): readonly MessagesBlock[] {
    switch (block.type) {
      case "text":
      case "refusal":
        if (!/\S/.test(block.text)) return [];
        return [this.#with(block.extra, this.text(block.text))];
      case "image":
        return [this.#with(block.extra, this.#image(block))];
      case "document":
        return this.#document(block).map((sent) => this.#with(block.extra, sent));
      case "audio":
        throw unsupported(
          block.at,
          `${block.at}: this model does not accept audio. Send a transcript.`,
        );
      default:
        return [];
    }
  }

  foreign({ value }: ForeignBlock): MessagesBlock | undefined {
    const { isOwn, forwarded } = this.#rules;
    const type = value["type"];
    if (!isOwn || typeof type !== "string" || !forwarded.has(type)) return undefined;
    return objectOf(unmarked(value));
  }

  /** Undefined for a thought without a signature, which the API refuses. */
  thought({ text, opaque, isRedacted }: ReasoningBlock): MessagesBlock | undefined {
    if (opaque === undefined) return undefined;
    return isRedacted === true
      ? { type: "redacted_thinking", data: opaque }
      : { type: "thinking", thinking: text, signature: opaque };
  }

  call({ id, name, input, from }: SentCall): MessagesBlock {
    return this.#with(from.extra, { type: "tool_use", id, name, input });
  }

  result({ id, content, from }: SentResult<MessagesBlock>): MessagesBlock {
    return this.#with(from.extra, {
      type: "tool_result",
      tool_use_id: id,
      ...(content.length > 0 && { content }),
      ...(from.isError === true && { is_error: true }),
    });
  }

  /** A thought takes no mark. */
  mark(content: MessagesBlock[], mark: CacheMark): void {
    const last = content.at(-1);
    if (last === undefined || this.isThought(last)) return;
    content[content.length - 1] = { ...last, ...cacheControl(mark) };
  }

  /** The API has no limits that other messages do not state better. */
  count(): void {
    return undefined;
  }

  #with(extra: ExtraFields | undefined, block: MessagesBlock): MessagesBlock {
    const { isOwn, forwarded } = this.#rules;
    if (!isOwn) return block;
    // Of documents whether they are cited, of texts what they cite.
    const citations = extra?.["citations"] ?? undefined;
    return withFields(citations === undefined ? block : { ...block, citations }, extra, forwarded);
  }

  #image({ url, at }: ImageBlock): MessagesBlock {
    if (!this.#rules.images) {
      throw unsupported(at, `${at}: this model does not accept images. Remove the image.`);
    }
    if (/^https?:/i.test(url)) return { type: "image", source: { type: "url", url } };
    const data = parseDataUrl(url);
    const format = data && imageFormatOf(data);
    if (data === undefined || format === undefined) {
      throw invalidRequest(
        at,
        `${at}: the image is not a data URL with valid data of PNG, JPEG, GIF or WebP.`,
      );
    }
    return { type: "image", source: base64(`image/${format}`, data.base64) };
  }

  #document({ data: sent, text, url, filename, context, at }: DocumentBlock) {
    if (!this.#rules.documents) {
      throw unsupported(at, `${at}: this model does not accept files. Send the text itself.`);
    }
    if (url !== undefined) {
      throw unsupported(at, `${at}: addresses of files are not read here. Send the file itself.`);
    }
    if (text !== undefined && !/\S/.test(text)) return [];
    const source = text === undefined ? this.#file(sent, filename, at) : plain(text);
    const about = {
      ...(filename !== undefined && { title: filename }),
      ...(context && { context }),
    };
    return [{ type: "document", source, ...about }];
  }

  #file(sent: string | undefined, filename: string | undefined, at: string): JsonObject {
    if (sent === undefined) {
      throw unsupported(at, `${at}: file ids are not supported. Send the file itself.`);
    }
    const whole = /^data:/i.test(sent) ? parseDataUrl(sent) : undefined;
    const bytes = whole?.base64 ?? soundBase64(sent);
    if (bytes === undefined) throw invalidRequest(at, `${at}: the file is not valid base64 data.`);
    const isPdf = bytes.startsWith("JVBERi0") || whole?.mediaType === "application/pdf";
    if (isPdf) return base64("application/pdf", bytes);
    if (isTextFile(whole?.mediaType ?? "", filename ?? "")) {
      return plain(Buffer.from(bytes, "base64").toString());
    }
    throw invalidRequest(
      at,
      `${at}: the file must be a PDF or text. Say so in its media type or filename.`,
    );
  }
}

/** Marks of its parts would count, too: the conversation has the block's own. */
function unmarked(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(unmarked);
  if (!isObject(part)) return part;
  const block = fieldsBeyond(part, marks) ?? {};
  return "content" in block ? { ...block, content: unmarked(block["content"]) } : block;
}

const marks = fieldNames("cache_control");

/** An object with those of the caller's other fields that are forwarded. Its own win. */
export function withFields<Sent extends JsonObject>(
  sent: Sent,
  extra: ExtraFields | undefined,
  forwarded: ReadonlySet<string>,
): Sent {
  if (extra === undefined) return sent;
  const more = Object.entries(extra).filter(([name]) => forwarded.has(name) && !(name in sent));
  return more.length === 0 ? sent : { ...sent, ...Object.fromEntries(more) };
}

export function cacheControl({ ttl }: CacheMark): JsonObject {
  return { cache_control: { type: "ephemeral", ...(ttl === "1h" && { ttl }) } };
}

function base64(mediaType: string, data: string): JsonObject {
  return { type: "base64", media_type: mediaType, data };
}

function plain(data: string): JsonObject {
  return { type: "text", media_type: "text/plain", data };
}

/** Source code and tables are text, also when their type does not say so. */
function isTextFile(mediaType: string, filename: string): boolean {
  if (mediaType.startsWith("text/") || mediaType === "application/json") return true;
  return /\.(?:txt|md|markdown|csv|tsv|html?|json|xml|ya?ml|log)$/i.test(filename);
}
