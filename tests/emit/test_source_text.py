"""What is done with the lines of a text: those that nobody reads leave, and what is left is Python."""

from metaphrase.astpasses.emit.source_text import without_unread

LINES = """\
    if n > k:
        count = np.sum(m)
    else:
        total = 1
        other = np.sum(m)
    for i in range(3):
        if i:
            count = i
        wide = np.sum(
            m)
    return total, other""".splitlines()


def test_a_block_that_is_left_without_lines_passes():
    left = without_unread(LINES, {"count", "other", "wide"})
    assert (
        left
        == """\
    if n > k:
        pass
    else:
        total = 1
        other = np.sum(m)
    for i in range(3):
        if i:
            pass
        wide = np.sum(
            m)
    return total, other""".splitlines()
    )
    compile("def f():\n" + "\n".join(left), "<left>", "exec")


def test_a_name_that_only_its_own_line_reads_leaves():
    assert without_unread(["    k = k_1 + 1", "    return k_1"], {"k"}) == ["    return k_1"]
    lines = ["    n_1 = n + 1", "    zeros_n_1 = np.zeros(n_1)", "    return zeros_n_1"]
    assert without_unread(lines, {"n_1"}) == lines
