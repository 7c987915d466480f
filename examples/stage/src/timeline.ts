/** What a demo prints, and whether all went well. */

const started = Date.now();
let failures = 0;

/** One line of the timeline. */
export function tell(who: string, what: string): void {
  const seconds = ((Date.now() - started) / 1000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${who.padEnd(12)} ${what}`);
}

/** Says what is, and remembers it if it is not what it should be. */
export function check(who: string, what: string, good: boolean): void {
  if (!good) failures += 1;
  tell(who, `${good ? "ok  " : "NOT "} ${what}`);
}

/** Plays one story after the other, each under its function's name in words. */
export async function play<Stage>(
  stories: readonly ((stage: Stage) => Promise<void>)[],
  stage: Stage,
): Promise<void> {
  for (const story of stories) {
    console.log(`\n${story.name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`);
    await story(stage);
  }
}

/** Prints the verdict. @returns the exit code */
export function verdict(): number {
  console.log(failures === 0 ? "\nAll as it should be." : `\n${failures} checks failed.`);
  return failures === 0 ? 0 : 1;
}
