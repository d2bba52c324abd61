/** A text answer too long to be held in memory, written while it is read. */
export class Download {
  readonly contentType: string;
  readonly fileName: string;
  /** Produced as it is read; the work stops when reading stops. */
  readonly chunks: AsyncGenerator<string>;

  constructor(contentType: string, fileName: string, chunks: AsyncGenerator<string>) {
    this.contentType = contentType;
    this.fileName = fileName;
    this.chunks = chunks;
  }
}

/**
 * Writes a download chunk by chunk with back-pressure. The first chunk is made before the answer
 * starts, so that an early failure is a proper error; a later one breaks the connection, so that
 * an incomplete text is not mistaken for a whole one.
 */
export async function streamDownload({ chunks }: Download): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<string, unknown>> | undefined = Promise.resolve(
    await chunks.next(),
  );
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const result = await (next ?? chunks.next());
        next = undefined;
        if (result.done === true) controller.close();
        else controller.enqueue(encoder.encode(result.value));
      },
      async cancel() {
        await chunks.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
