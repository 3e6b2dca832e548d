"""SCRUB.md: what was done, what was not, and what a person should still check.

It goes out with the files, so it holds counts and sentences, and no name, date or path.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Name of the page in the copy.
PAGE = "SCRUB.md"

NOT_PROTECTED = (
    "This does not protect gaze. The gaze in these files is as it was recorded: people can be"
    " recognised by how they look, and age, sex, health and interests can be guessed from it. Use"
    " `gazeveil publish` for a release that protects gaze."
)

CHECKS = (
    "Open a few files and read their headers, messages and column names.",
    "Labels stand for names: the holder of the raw files can undo them as long as these exist, and"
    " times, lengths and gaze link a file to its raw one.",
    "Rates, lengths, screens and models of trackers are as they were: a rare one can point to a"
    " lab, a day or a person.",
    "Texts that you named with --keep-text, columns that you named with --keep, and task and"
    " condition words of BIDS stay as they are: read them.",
    "Results of a calibration stay in EyeLink files, and they describe the eye.",
    "Stimuli, pictures and videos are not copied: a scene video shows faces and places.",
    "Files that were not copied may be needed to use the others; look through them before you add"
    " one by hand.",
    "Few people, or one with a rare condition, can be found by what is known about the study.",
)


def page(formats: Mapping[str, int], done: Mapping[str, int], not_copied: int) -> str:
    """The page of a copy.

    Parameters
    ----------
    formats : mapping of str to int
        Format -> number of files that were copied.
    done : mapping of str to int
        What was done -> how often.
    not_copied : int
        Number of files that were not copied.
    """
    lines = ["# Identifiers were taken out of these files", "", f"**{NOT_PROTECTED}**", ""]
    lines += ["## What was done", ""]
    lines += [
        f"- {count} files of the format {name} were copied." for name, count in formats.items()
    ]
    lines.append(f"- {not_copied} files were not copied, because their kind is not known.")
    lines += [f"- {what}: {count}." for what, count in sorted(done.items()) if count]
    lines += [
        "- File names, names of people, sessions, stimuli and messages are random labels; equal"
        " texts have equal labels.",
        "- Dates are 1 January 2000, clocks begin at 0, serial numbers, paths and addresses are"
        " gone, and so is everything in a field that is not known to be harmless.",
        "- Where a file had the places of both eyes, both have the place between them, so that the"
        " distance between the eyes is gone; positions of the head, which hold height, are left"
        " out.",
        "- All files have the same time of change.",
        "",
        "## What a person should still check",
        "",
    ]
    lines += [f"{i}. {check}" for i, check in enumerate(CHECKS, 1)]
    return "\n".join(lines) + "\n"
