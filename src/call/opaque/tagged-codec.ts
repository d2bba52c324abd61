import type { AdjustedFields, ChatEvent } from "../../domain/chat/answer.ts";
import type { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { Destination } from "../../routing/candidates.ts";
import type { Call } from "../../snapshot/call.ts";
import type { ChatCodec, StreamDecoder, ValueOrigin } from "../../upstreams/adapter.ts";
import { OpaqueValues, type Opened } from "./opaque-values.ts";
import type { ValueTags } from "./value-tags.ts";

/** What only a destination understands, for the caller of a call. */
export function opaqueValuesOf(
  destination: Destination,
  { caller }: Pick<Call, "caller">,
  tags: ValueTags,
): OpaqueValues {
  const { accountId } = caller.key;
  return new OpaqueValues(tags.of({ origin: originOf(destination), accountId }));
}

function originOf({ target, upstream }: Destination): ValueOrigin {
  const { chat, provider = "" } = upstream.adapter;
  const { name } = upstream;
  return (
    chat?.origin?.(target.model, name) ?? { wire: provider, model: target.model, account: name }
  );
}

/** The codec for one caller: opaque values leave in tags, and return to their origin without. */
export function taggedCodec(codec: ChatCodec, values: OpaqueValues): ChatCodec {
  const { takesChoiceCount, takesImageUrls, countTokens } = codec;
  return {
    takesChoiceCount,
    takesImageUrls,
    encode(request, model) {
      const opened = values.open(request);
      const exchange = codec.encode(opened.request, model);
      return {
        ...exchange,
        adjusted: adjustedBy(opened, exchange.adjusted),
        decode: (answer) => values.tagResult(exchange.decode(answer)),
      };
    },
    encodeStream(request, model) {
      const opened = values.open(request);
      const exchange = codec.encodeStream(opened.request, model);
      return {
        ...exchange,
        adjusted: adjustedBy(opened, exchange.adjusted),
        newDecoder: (limits) => new TaggingDecoder(exchange.newDecoder(limits), values),
      };
    },
    ...(countTokens !== undefined && {
      countTokens: (request, model) => countTokens(values.open(request).request, model),
    }),
  };
}

function adjustedBy(
  { droppedFrom }: Opened,
  adjusted: AdjustedFields | undefined,
): AdjustedFields | undefined {
  if (droppedFrom === undefined) return adjusted;
  return new Map([...(adjusted ?? []), [droppedFrom, "thoughts-dropped"]]);
}

class TaggingDecoder implements StreamDecoder<ChatEvent> {
  readonly #decoder: StreamDecoder<ChatEvent>;
  readonly #values: OpaqueValues;

  constructor(decoder: StreamDecoder<ChatEvent>, values: OpaqueValues) {
    this.#decoder = decoder;
    this.#values = values;
  }

  get failure(): UpstreamFailure | undefined {
    return this.#decoder.failure;
  }

  get isDone(): boolean {
    return this.#decoder.isDone;
  }

  get endedEarly(): boolean {
    return this.#decoder.endedEarly === true;
  }

  get malformedEvents(): number {
    return this.#decoder.malformedEvents;
  }

  push(bytes: Uint8Array): readonly ChatEvent[] {
    return this.#values.tagEvents(this.#decoder.push(bytes));
  }

  end(): readonly ChatEvent[] {
    return this.#values.tagEvents(this.#decoder.end());
  }
}
