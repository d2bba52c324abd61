import type { ContentPart } from "../../domain/chat/conversation.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import fields from "./request-fields.json" with { type: "json" };

/** Which fields of a caller's body are sent to the upstream, by their place in the body. */
export interface ForwardedFields {
  readonly root: ReadonlySet<string>;
  readonly message: ReadonlySet<string>;
  /** In addition to the field named after the part's type, such as `text` of a `text` part. */
  readonly part: ReadonlySet<string>;
  /** Within the `audio` of an assistant's message. */
  readonly spoken: ReadonlySet<string>;
  /** Of a tool call, and of its `function` or `custom`. */
  readonly call: ReadonlySet<string>;
  readonly callBody: ReadonlySet<string>;
  /** Within `image_url`, `input_audio` and `file` of a part. */
  readonly media: ReadonlySet<string>;
}

/**
 * The fields of OpenAI's public API, `reasoning_content`, which Sluice's own answers have, and the
 * operator's additions. Servers accept many others that choose another model, address or credential,
 * or that let a call use more than its limits. Embeddings are written field by field.
 */
export function forwardedFields(added: readonly string[]): ForwardedFields {
  return {
    root: new Set([...fields.root, ...added]),
    message: new Set([...fields.message, ...added]),
    part: new Set(["type", "prompt_cache_breakpoint", ...added]),
    // Answers have the sound, too, and callers send them back whole.
    spoken: new Set(["id", ...added]),
    call: new Set(["id", "type", "function", "custom", ...added]),
    callBody: new Set(["name", "arguments", "input", ...added]),
    media: new Set([...fields.media, ...added]),
  };
}

/** A copy with only the forwarded fields and `own`; the value itself if it has no others. */
export function only<Value extends object>(
  value: Value,
  forwarded: ReadonlySet<string>,
  own?: string,
): Value {
  for (const field in value) {
    if (forwarded.has(field) || field === own) continue;
    const copy = { ...value };
    for (const each in value) if (!forwarded.has(each) && each !== own) delete copy[each];
    return copy;
  }
  return value;
}

/** A part of a message's content, whose type names the one field with the content. */
export function onlyPart(part: ContentPart, { part: known, media }: ForwardedFields): ContentPart {
  const kept = only(part, known, part.type);
  switch (kept.type) {
    case "text":
    case "refusal":
      return kept;
    case "image_url":
      return { ...kept, image_url: only(kept.image_url, media) };
    case "input_audio":
      return { ...kept, input_audio: only(kept.input_audio, media) };
    case "file":
      refuseAddress(kept.file["file_data"]);
      return { ...kept, file: only(kept.file, media) };
  }
}

/** OpenAI accepts files only as data; some servers would fetch any address. */
function refuseAddress(data: unknown): void {
  if (typeof data !== "string" || !/^\s*(?!data:)[a-z][a-z0-9+.-]*:/i.test(data)) return;
  throw new UpstreamFailure({
    kind: "unsupported",
    message: "Files are accepted only as data, not by address: send file_data as a data URL.",
    param: "file_data",
  });
}
