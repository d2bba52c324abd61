export interface DownloadText {
  readonly contentType: string;
  readonly fileName: string;
  /** Produced as it is read: whoever stops reading stops the work. */
  readonly chunks: AsyncGenerator<string>;
}

/** An answer that is too long to be held: text that is written while it is read. */
export class Download implements DownloadText {
  readonly contentType: string;
  readonly fileName: string;
  readonly chunks: AsyncGenerator<string>;

  constructor({ contentType, fileName, chunks }: DownloadText) {
    this.contentType = contentType;
    this.fileName = fileName;
    this.chunks = chunks;
  }
}

/**
 * Writes a download as fast as it is read, one chunk at a time, and no further than its reader. The
 * first chunk is made before anything is answered, so that what fails at once is an error of its
 * own; what fails later breaks the connection, so that nobody takes the part for the whole.
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
