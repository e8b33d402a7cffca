"""Bugs that would break a guarantee, each as an edit of one file, and the tests that must see it.

Some were planted once by hand while every test stayed green. A mutant names a function and an edit
of its tree, so that formatting, comments and moves within a file leave it alone.
"""

from __future__ import annotations

from dataclasses import dataclass

RECORD = "golden/test_golden.py::test_a_mechanism_does_what_its_version_did"
ATTACK = "audits/test_every.py::test_every_rule_and_every_search_passes"

CORRECTED = "workflow/test_day_two.py::test_terms_under_which_nothing_was_committed_are_corrected"


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Args:
        at: The function or class that is edited, by its dotted name; empty for the module.
        old: An expression or statements of it, compared as trees.
        new: What takes their place.
        tests: Below tests/, as pytest names them. One of them, at least, has to fail.
    """

    name: str
    file: str
    at: str
    old: str
    new: str
    tests: tuple[str, ...]


OF_FINDINGS = (
    "learn/test_findings.py::test_no_unit_of_any_findings_moves_all_sums_together_further_than_mu",
)


ANSWERS = "learn/test_answers.py"
MEASURES = "learn/test_measures.py"
BOOK = "privacy/ledger/test_book.py"
STORE = "privacy/release/test_store.py"
PLAN = "plan/test_plan.py"
CHOICE = "plan/test_choose.py"
CHOSEN = (
    "workflow/test_choose.py"
    "::test_every_candidate_is_charged_and_the_best_by_noised_counts_is_released"
)
STATED = "privacy/statement/test_statement.py"


IDENTITY = "data/test_identity.py"


def attack(*groups: str) -> tuple[str, ...]:
    return tuple(f"{ATTACK}[{group}]" for group in groups)


def recorded(*cases: str) -> tuple[str, ...]:
    return tuple(f"{RECORD}[{case}]" for case in cases)


MUTANTS = (
    # Statistics of a ledger.
    Mutant(
        "a sum of values below zero moves by its upper bound alone",
        "external_ledger/statistics.py",
        "clipped_sum_of_values",
        "max(abs(low), abs(high))",
        "abs(high)",
        (
            "external_ledger/test_statistics.py"
            "::test_one_record_adds_no_more_than_the_noise_is_made_for[sum below 0]",
        ),
    ),
    Mutant(
        "a mean moves its sum and no count",
        "external_ledger/statistics.py",
        "scaled_sum_and_count",
        "math.sqrt(2.0)",
        "1.0",
        (
            "external_ledger/test_statistics.py"
            "::test_one_record_adds_no_more_than_the_noise_is_made_for[mean]",
        ),
    ),
    Mutant(
        "a tree of counts moves in one level alone",
        "external_ledger/statistics.py",
        "tree_of",
        "math.sqrt(LEVELS)",
        "1.0",
        (
            "external_ledger/test_statistics.py"
            "::test_one_record_adds_no_more_than_the_noise_is_made_for[quantiles]",
        ),
    ),
    Mutant(
        "a replaced record moves a statistic once",
        "external_ledger/ledger.py",
        "OpenLedger._release_statistic",
        "2.0 if terms.relation == 'replace_one' else 1.0",
        "1.0",
        (
            "external_ledger/test_statistics.py"
            "::test_a_statistic_costs_the_epsilon_that_was_asked_for[replace_one]",
        ),
    ),
    # Sensitivities, of the rules.
    Mutant(
        "a replaced unit counts once",
        "learn/queries.py",
        "Query.sensitivity",
        "constants.relation == 'replace_one'",
        "False",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[gradients]",),
    ),
    Mutant(
        "a unit has one record",
        "learn/queries.py",
        "Query.entering",
        "self.bound(constants) * constants.cap",
        "self.bound(constants)",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[moments]",),
    ),
    Mutant(
        "a replaced unit moves one count or matrix alone",
        "learn/queries.py",
        "",
        "{'opposite': 2.0, 'apart': math.sqrt(2.0), 'range': 1.0}",
        "{'opposite': 2.0, 'apart': 1.0, 'range': 1.0}",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[moments]",),
    ),
    Mutant(
        "the mean's sensitivity is its radius",
        "learn/queries.py",
        "UnitMean.bound",
        "self.radius / constants.cap",
        "self.radius / constants.cap / 2",
        ("audits/test_every.py::test_every_rule_and_every_search_passes[estimate_mean]",),
    ),
    Mutant(
        "the mean's sensitivity is that of things which are never opposite",
        "learn/queries.py",
        "UnitMean",
        "width: int",
        "width: int; law: ClassVar[Law] = 'apart'",
        ("audits/test_every.py::test_every_rule_and_every_search_passes[estimate_mean]",),
    ),
    Mutant(
        "a test count's sensitivity is 1",
        "learn/queries.py",
        "Cells",
        "law: ClassVar[Law] = 'apart'",
        "law: ClassVar[Law] = 'range'",
        ("audits/test_every.py::test_every_rule_and_every_search_passes[evaluate]",),
    ),
    Mutant(
        "the relation is add_remove whatever the config says",
        "jobs/features.py",
        "stored_constants",
        "task.reads.relation",
        "'add_remove'",
        attack("train_final"),
    ),
    Mutant(
        "the cap is 1 whatever the config says",
        "jobs/features.py",
        "stored_constants",
        "task.reads.unit.cap",
        "1",
        attack("estimate_covariance"),
    ),
    Mutant(
        "a second moment moves by the radius, not by its square",
        "learn/queries.py",
        "SecondMoments.bound",
        "self.radius ** 2",
        "self.radius",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[moments]",),
    ),
    Mutant(
        "targets are taken for things that are never opposite",
        "learn/queries.py",
        "WeighedSums",
        "sums: int = 0",
        "sums: int = 0; law: ClassVar[Law] = 'apart'",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[class sums]",),
    ),
    Mutant(
        "a class's moments move by one record's whatever the cap",
        "learn/queries.py",
        "SecondMoments.bound",
        "self.radius ** 2",
        "self.radius ** 2 / constants.cap",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[moments]",),
    ),
    Mutant(
        "a record of several classes weighs in each as much as one of a single class",
        "learn/moments.py",
        "rows_of_class",
        "(labels >= 0).sum(0).double().rsqrt().float()",
        "torch.ones(len(records), device=records.device)",
        (
            "learn/test_second_order.py"
            "::test_a_neighbour_of_several_classes_moves_all_sums_together_by_mu_at_most",
        ),
    ),
    Mutant(
        "a record's findings each move targets as far as one class does",
        "learn/moments.py",
        "absence_weights",
        "each / each.norm(dim=0).clamp(min=1.0)",
        "each",
        (
            "learn/test_findings.py"
            "::test_no_unit_of_any_findings_moves_all_sums_together_further_than_mu",
        ),
    ),
    Mutant(
        "least squares of findings pay for one release of two",
        "methods/dp_ls/queries.py",
        "sums",
        "1 + by_class + several",
        "1 + by_class * several + several",
        (
            "learn/test_findings.py"
            "::test_no_unit_of_any_findings_moves_all_sums_together_further_than_mu",
        ),
    ),
    Mutant(
        "what is unknown of a record is in its targets",
        "learn/moments.py",
        "absence_weights",
        "known * torch.where(present, 1.0, absent)",
        "torch.where(present, 1.0, absent)",
        (
            "learn/test_findings.py"
            "::test_least_squares_of_findings_are_a_newton_step_from_their_public_share",
        ),
    ),
    Mutant(
        "what a record has and what it lacks move prototypes as far as each alone",
        "learn/moments.py",
        "presence_weights",
        "(shared / shared.norm(dim=(0, 1)).clamp(min=1.0))",
        "shared",
        (
            "learn/test_findings.py"
            "::test_no_unit_of_any_findings_moves_all_sums_together_further_than_mu",
        ),
    ),
    Mutant(
        "what is unknown of a record is in a prototype",
        "learn/moments.py",
        "presence_weights",
        "known & ~present",
        "~present",
        (
            "learn/test_findings.py"
            "::test_a_finding_has_a_prototype_of_those_that_have_it_and_one_of_those_that_lack_it",
        ),
    ),
    Mutant(
        "the released score forgets its sensitivity",
        "learn/queries.py",
        "RightCount.bound",
        "1.0",
        "0.5",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[counts]",),
    ),
    # What is summed.
    Mutant(
        "the mean clips nothing",
        "learn/counts.py",
        "_sum_of_means",
        "scale_into_ball(data.features[block], query.radius, query.exact)",
        "np.asarray(data.features[block], np.float64)",
        attack("estimate_mean"),
    ),
    Mutant(
        "a unit's records weigh in the mean as one each",
        "learn/counts.py",
        "_sum_of_means",
        "_shares(data.units, counted)",
        "np.ones(len(counted))",
        attack("estimate_mean"),
    ),
    Mutant(
        "records keep their lengths where all should have the public one",
        "privacy/arrays.py",
        "scale_into_ball",
        "to_length(np.asarray(rows, np.float64), radius)",
        "np.asarray(rows, np.float64)",
        attack("estimate_mean"),
    ),
    Mutant(
        "a million records leave no more room for float32 than a thousand",
        "learn/bounds.py",
        "slack",
        "SLACK * max(1.0, math.sqrt(records / ROOM))",
        "SLACK",
        (
            "learn/test_linear.py::"
            "test_a_neighbour_shifts_chunks_of_a_million_records_of_one_class_within_the_slack",
        ),
    ),
    Mutant(
        "each record of a unit is clipped to the whole unit's bound",
        "learn/curator.py",
        "Curator._sums_of",
        "query.bound(constants) * (1.0 - sums.records.slack)",
        "query.clip * (1.0 - sums.records.slack)",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[gradients]",),
    ),
    Mutant(
        "gradients are not clipped",
        "learn/bounds.py",
        "clip",
        "(bound / norms).clamp(max=1.0)",
        "norms / norms",
        attack("train_final"),
    ),
    Mutant(
        "a factor may be no float32",
        "learn/bounds.py",
        "clip",
        "LEAST",
        "0.0",
        ("learn/test_linear.py::test_a_factor_that_is_no_float32_is_none",),
    ),
    Mutant(
        "a normalised gradient's factor may be no float32",
        "learn/bounds.py",
        "normalise",
        "LEAST",
        "0.0",
        ("learn/test_linear.py::test_a_factor_that_is_no_float32_is_none",),
    ),
    Mutant(
        "normalised gradients are longer than the bound",
        "learn/bounds.py",
        "normalise",
        "bound",
        "2 * bound",
        ("learn/test_linear.py::test_no_record_contributes_more_than_the_bound",),
    ),
    Mutant(
        "small gradients are normalised to more than the bound",
        "learn/bounds.py",
        "normalise",
        "norms + STABILITY",
        "(norms - STABILITY).abs()",
        ("learn/test_linear.py::test_no_record_contributes_more_than_the_bound",),
    ),
    Mutant(
        "a fine-tuned network's gradients are not clipped",
        "learn/finetune/clipping.py",
        "factors",
        "scale(norms, bound).nan_to_num(nan=0.0)",
        "torch.ones_like(norms)",
        ("learn/test_finetune.py::test_no_record_breaks_a_chunk_or_exceeds_the_bound",),
    ),
    Mutant(
        "fine-tuning counts records that count as nothing",
        "learn/finetune/clipping.py",
        "clipped_sum",
        "factors(parts, bound, scale) * records.counted[chunk]",
        "factors(parts, bound, scale)",
        ("learn/test_finetune.py::test_a_record_that_counts_as_nothing_adds_nothing",),
    ),
    Mutant(
        "a fine-tuned layer's bias is left out of the norm",
        "learn/finetune/forms.py",
        "Product.squares",
        "products + g.sum(1).square().sum(1) if self.bias else products",
        "products",
        (
            "learn/test_finetune.py"
            "::test_the_sum_is_that_of_clipped_gradients_taken_one_record_at_a_time",
        ),
    ),
    Mutant(
        "a record's place decides in which order its logits are added up",
        "network/layers.py",
        "Steady.forward",
        "(self.weight @ filled.T).T[: len(rows)].reshape(*input.shape[:-1], -1)",
        "(rows @ self.weight.T).reshape(*input.shape[:-1], -1)",
        (
            "network/test_layers.py"
            "::test_a_steady_layer_rounds_a_record_in_one_way_wherever_it_stands",
            "learn/test_mlp.py::test_no_record_changes_what_another_adds_to_an_mlps_sum",
        ),
    ),
    Mutant(
        "an odd multiple of eight rows is multiplied as it is",
        "network/layers.py",
        "Steady.forward",
        "-len(rows) % FULL",
        "-len(rows) % 8",
        (
            "network/test_layers.py"
            "::test_a_steady_layer_rounds_a_record_in_one_way_wherever_it_stands",
        ),
    ),
    Mutant(
        "a layer that changes its weight on the way is taken for the layer it derives from",
        "network/layers.py",
        "is_plain",
        "module_kind is kind and (not hooked) and ('forward' not in vars(module))",
        "isinstance(module, kind) and 'forward' not in vars(module)",
        (
            "learn/test_finetune.py"
            "::test_every_kind_of_layer_trains_as_autograd_does_and_merges_as_it_was_trained",
        ),
    ),
    Mutant(
        "a norm's gradient is taken from what other records normed",
        "learn/finetune/clipping.py",
        "_norm_layer_gradients",
        "batch_norm(taken, module.running_mean, module.running_var, eps=module.eps)",
        "batch_norm(taken, None, None, training=True, eps=module.eps)",
        (
            "learn/test_finetune.py"
            "::test_the_sum_is_that_of_clipped_gradients_taken_one_record_at_a_time",
        ),
    ),
    Mutant(
        "a gradient whose terms cancel is clipped by its norm alone",
        "learn/finetune/clipping.py",
        "factors",
        "torch.maximum(squares, LOOSE ** 2 * terms)",
        "squares",
        ("learn/test_finetune.py::test_a_gradient_that_terms_cancel_in_is_clipped_by_its_terms",),
    ),
    Mutant(
        "terms that cancel in a matrix made whole count for nothing",
        "learn/finetune/forms.py",
        "Product.as_matrices",
        "SummedGradients([matrices.flatten(1)], terms)",
        "SummedGradients([matrices.flatten(1)])",
        ("learn/test_finetune.py::test_a_gradient_that_terms_cancel_in_is_clipped_by_its_terms",),
    ),
    Mutant(
        "a word that a text says twice is in its gradient's norm once",
        "learn/finetune/forms.py",
        "Looked.squares",
        "same * (g @ g.mT)",
        "g.square()",
        (
            "learn/test_finetune.py"
            "::test_the_sum_is_that_of_clipped_gradients_taken_one_record_at_a_time",
        ),
    ),
    Mutant(
        "views are clipped by the norm of their first",
        "learn/finetune/clipping.py",
        "_positions",
        "rows if views == 1 else rows.reshape(-1, views * rows.shape[1], rows.shape[2])",
        "rows[::views]",
        ("learn/test_finetune.py::test_views_are_averaged_before_they_are_clipped",),
    ),
    Mutant(
        "a network that rounds a record by its place is not refused",
        "learn/finetune/probing.py",
        "refuse_mixing",
        "torch.equal(logits, logits[:1].expand_as(logits))",
        "torch.equal(logits[:1], logits[:1])",
        ("learn/test_finetune.py::test_a_network_that_rounds_a_record_by_its_place_is_refused",),
    ),
    Mutant(
        "a network that mixes records is not refused",
        "learn/finetune/probing.py",
        "refuse_mixing",
        "torch.equal(a[same], b[same])",
        "torch.equal(a[:0], b[:0])",
        (
            "learn/test_finetune.py"
            "::test_a_network_that_mixes_records_is_refused_whatever_its_layers_are_called",
        ),
    ),
    Mutant(
        "batch norm learns from private records",
        "learn/finetune/parts.py",
        "_build_tuned_model",
        "module.eval",
        "module.train",
        ("learn/test_finetune.py::test_it_trains_alike_twice_and_draws_each_step_afresh",),
    ),
    Mutant(
        "a loss counts for more than its bound",
        "learn/curator.py",
        "Curator._losses.bounded",
        "(losses / bounds).nan_to_num_(nan=1.0).clamp_(0.0, 1.0 - SLACK)",
        "(losses / bounds).nan_to_num_(nan=1.0)",
        (
            "learn/test_hyfree_finetune.py"
            "::test_no_record_moves_a_loss_by_more_than_the_bound_nor_a_gradient_by_more_than_one",
        ),
    ),
    Mutant(
        "as published, HyFreeDP's bound is not held to public figures",
        "methods/hyfree_dp/train.py",
        "fit_rate",
        "bound = (room * here).nan_to_num_(nan=math.inf).clamp_(min=LEAST * unit, max=MOST * unit)",
        "bound = here if steering == 'published' else (room * "
        "here).nan_to_num_(nan=math.inf).clamp_(min=LEAST * unit, max=MOST * unit)",
        (
            "learn/test_first_order.py"
            "::test_no_losses_take_the_rate_or_the_next_bound_out_of_their_limits",
        ),
    ),
    Mutant(
        "five losses at a look are charged as three",
        "learn/queries.py",
        "Query.events",
        "self.numbers",
        "min(3, self.numbers)",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[losses]",),
    ),
    Mutant(
        "a network's gradients are normalised as if each were short",
        "learn/bounds.py",
        "scale_of",
        "normalise",
        "(lambda norms, bound: normalise(norms.clamp(max=1.0), bound))",
        (
            "learn/test_hyfree_finetune.py"
            "::test_the_noised_sum_is_that_of_gradients_scaled_to_length_one",
        ),
    ),
    Mutant(
        "losses of a network count records that count as nothing",
        "learn/finetune/clipping.py",
        "summed_losses",
        "bounded(losses) * counted",
        "bounded(losses)",
        ("learn/test_hyfree_finetune.py::test_a_record_that_counts_as_nothing_adds_nothing",),
    ),
    Mutant(
        "a loss that float64 does not tell counts",
        "learn/linear.py",
        "_losses",
        "records.counted[chunk] & near",
        "records.counted[chunk]",
        ("learn/test_linear.py::test_no_record_changes_what_another_adds_to_a_sum_of_losses",),
    ),
    Mutant(
        "a network's losses take one view of each record for all",
        "learn/finetune/clipping.py",
        "_losses",
        "losses.view(len(x), -1).mean(dim=1)",
        "losses.view(len(x), -1)[:, 0]",
        (
            "learn/test_hyfree_finetune.py"
            "::test_a_records_losses_are_torchs_own_under_each_of_several_weights",
        ),
    ),
    Mutant(
        "a step's losses are noised as if there were one",
        "learn/queries.py",
        "Query.draw",
        "math.sqrt(self.numbers)",
        "1.0",
        ("learn/test_interface.py::test_the_draws_of_a_training_cost_what_its_events_charge",),
    ),
    Mutant(
        "a step's Laplace losses on a sample are charged as one",
        "learn/queries.py",
        "_merged",
        "sum(one.count for one in same)",
        "next(one.count for one in same)",
        (
            "learn/test_first_order.py"
            "::test_laplace_losses_on_samples_are_declared_at_what_they_are_charged",
        ),
    ),
    Mutant(
        "Laplace noise on a sample goes without a charge",
        "privacy/accounting/draws.py",
        "_sampled_noise",
        "d.distribution in ('gaussian', 'laplace')",
        "d.distribution == 'gaussian'",
        ("privacy/accounting/test_draws.py::test_a_charge_and_its_own_noise_go_together",),
    ),
    Mutant(
        "a unit that leaves a sample of several noises is priced as one that enters",
        "privacy/accounting/booking.py",
        "_sampled_loss_distribution",
        "((leaves, -ends[0], ends[1]), (enters, -ends[1], ends[0]))",
        "((enters, -ends[1], ends[0]), (enters, -ends[1], ends[0]))",
        (
            "privacy/accounting/test_booking.py"
            "::test_gaussian_and_laplace_noise_on_one_sample_is_the_mixture_by_quadrature",
        ),
    ),
    Mutant(
        "losses of a sample move as those of a full batch do",
        "learn/queries.py",
        "Query.sensitivity",
        "self.sampling_rate < 1.0",
        "False",
        (
            "learn/test_first_order.py"
            "::test_losses_of_a_sample_cost_what_is_stated_where_units_are_replaced",
        ),
    ),
    Mutant(
        "a draw in a sample may declare too small a move",
        "privacy/accounting/draws.py",
        "check_charge_matches_noise",
        """if not (direct and _events_match(claimed, priced)):
    kinds = ', '.join(sorted({event_kind(e.event) for e in events})) or 'nothing'
    raise Refused(f'what is charged ({kinds}) is not what the declared noise costs. '
        'Nothing was read: the declaration of this mechanism is wrong; '
        'make its events and its draws from the same sensitivity.')
_check_samples(draws, relation)""",
        """if not (direct and _events_match(claimed, priced)):
    kinds = ', '.join(sorted({event_kind(e.event) for e in events})) or 'nothing'
    raise Refused(f'what is charged ({kinds}) is not what the declared noise costs. '
        'Nothing was read: the declaration of this mechanism is wrong; '
        'make its events and its draws from the same sensitivity.')""",
        (
            "privacy/accounting/test_draws.py"
            "::test_a_sum_over_a_sample_declares_how_far_neighbours_lie_from_nobody_sampled",
        ),
    ),
    Mutant(
        "neighbours in a sample are taken for neighbours on a full batch",
        "privacy/accounting/draws.py",
        "sampled_sensitivity",
        "entering * (2.0 if relation == 'replace_one' else 1.0)",
        "entering",
        (
            "privacy/accounting/test_draws.py"
            "::test_a_sum_over_a_sample_declares_how_far_neighbours_lie_from_nobody_sampled",
        ),
    ),
    Mutant(
        "a random subset is drawn at any probability",
        "privacy/accounting/draws.py",
        "check_charge_matches_noise",
        "_direct_draws_match(events, draws) and _subset_masks_match(events, draws)",
        "_direct_draws_match(events, draws)",
        (
            "privacy/accounting/test_draws.py"
            "::test_a_subset_is_drawn_at_the_probability_that_is_charged",
        ),
    ),
    Mutant(
        "a sample of several mechanisms is priced as its first one",
        "external_ledger/mechanisms.py",
        "_sampled_events",
        "inside[0].event if len(inside) == 1 and inside[0].count == 1 else Composed(inside)",
        "inside[0].event",
        ("external_ledger/test_mechanisms.py::test_mechanisms_on_one_sample_are_charged_together",),
    ),
    Mutant(
        "what is booked several times is charged once",
        "privacy/accounting/booking.py",
        "price",
        "[one] * count",
        "[one]",
        (
            "privacy/accounting/test_booking.py"
            "::test_what_is_booked_several_times_is_charged_each_time",
        ),
    ),
    Mutant(
        "bins of scores follow the private scores",
        "learn/measures/tables.py",
        "Scores.places",
        "edges(model.weights, model.constants, of)",
        "np.quantile(margin(model.weights, unaugmented(data.features), of), "
        "np.linspace(0.05, 0.95, BINS - 1))",
        ("jobs/test_evaluate.py::test_a_record_is_in_one_bin_whatever_the_others_score",),
    ),
    Mutant(
        "gradients are clipped up",
        "learn/bounds.py",
        "clip",
        "(bound / norms).clamp(max=1.0)",
        "(2 * bound / norms).clamp(max=2.0)",
        attack("train_final"),
    ),
    Mutant(
        "records outside the ball stay there",
        "learn/moments.py",
        "scale_into_ball",
        "(radius * (1.0 - records.slack) / records.gram[rows, 0, 0].sqrt()).clamp_(max=1.0)",
        "(radius * (1.0 - records.slack) / records.gram[rows, 0, 0].sqrt()).clamp_(min=1.0, "
        "max=2.0)",
        attack("estimate_covariance"),
    ),
    Mutant(
        "entries off the diagonal count twice",
        "learn/moments.py",
        "_lengths",
        "(1.0 + (row != column).double()).sqrt()",
        "1.0 + (row != column).double()",
        attack("estimate_covariance"),
    ),
    Mutant(
        "a record without a label counts as one",
        "learn/counts.py",
        "_sum_of_means",
        "np.asarray(data.labels) >= 0",
        "np.asarray(data.labels) >= -1",
        ("data/test_centre.py::test_a_record_that_failed_a_check_counts_as_nothing",),
    ),
    Mutant(
        "a unit keeps all of its records",
        "data/prepare.py",
        "_select_rows",
        "islice(together if pool is None else pool(together), cap)",
        "together",
        ("data/test_prepare.py::test_a_user_keeps_at_most_cap_rows_all_in_one_part",),
    ),
    Mutant(
        "a record that is missing takes another one's place",
        "data/prepare.py",
        "_sort_key",
        "row.label < 0",
        "False",
        ("data/test_spans.py::test_a_missing_text_takes_no_other_ones_place_wherever_it_stands",),
    ),
    Mutant(
        "each span of a document is a unit of its own",
        "data/prepare.py",
        "_spans.spans",
        "replace(row, record=record, span=place)",
        "replace(row, record=record, unit=record, span=place)",
        ("data/test_spans.py::test_one_unit_less_changes_its_own_spans_and_no_other",),
    ),
    Mutant(
        "which spans count follows from where a document stands",
        "data/prepare.py",
        "_spans.spans",
        "row.record",
        "row.index.to_bytes(8, 'little')",
        ("data/test_spans.py::test_one_unit_less_changes_its_own_spans_and_no_other",),
    ),
    # Texts, each by itself.
    Mutant(
        "one line's id is a column for all",
        "data/tables.py",
        "from_jsonl",
        "layout.json_fields()",
        "{name: name for name in ROLES if any((name in _object(line) for line in lines))}",
        ("data/test_texts.py::test_no_line_gives_the_others_an_id",),
    ),
    Mutant(
        "one cell that Python has no value for ends the run",
        "data/tables.py",
        "_cells",
        "return [_cell(cell) for cell in column]",
        "raise",
        ("data/test_hostile.py",),
    ),
    Mutant(
        "one text's bytes end the run",
        "data/tables.py",
        "_rows_of",
        "path.open(encoding=encoding, errors=errors, newline='')",
        "path.open(encoding=encoding, newline='')",
        ("data/test_texts.py::test_bytes_that_are_no_utf8_cost_their_own_record_alone",),
    ),
    Mutant(
        "another tokenizer goes unnoticed",
        "data/sentences.py",
        "sentences",
        "tokenizer_digest(tokenizer)",
        "''",
        (
            "data/test_sentences.py"
            "::test_another_tokenizer_has_another_digest_and_so_has_another_length",
        ),
    ),
    Mutant(
        "a depth's length follows from the other records",
        "privacy/arrays.py",
        "to_length",
        "lengths_of(rows)",
        "lengths_of(rows).mean(axis=0)",
        ("data/test_depths.py::test_each_of_several_depths_has_the_same_length_in_every_record",),
    ),
    Mutant(
        "a text's row depends on padding",
        "data/sentences.py",
        "_run.run",
        "model(input_ids=tokens, attention_mask=mask, output_hidden_states=True)",
        "model(input_ids=tokens, output_hidden_states=True)",
        (
            "data/test_sentences.py"
            "::test_rows_are_those_of_plain_transformers_for_each_text_alone[mean]",
        ),
    ),
    Mutant(
        "a zeroth-order difference is not clipped to its share",
        "learn/queries.py",
        "LossDifference.bound",
        "self.clip / constants.cap",
        "self.clip",
        recorded("dp_zo add_remove"),  # noise follows the same bound, so no attack can see it
    ),
    Mutant(
        "a softmax is taken for less curved than it is",
        "learn/queries.py",
        "Curvatures.bound",
        "2.0 / (3.0 * math.sqrt(3.0)) * self.radius ** 2",
        "0.25 * self.radius ** 2",
        (
            "learn/test_second_order.py::test_softmax_curves_the_most_at_three_equal_probabilities",
            "audits/test_kinds.py::test_every_kind_passes_a_short_audit[curvatures]",
        ),
    ),
    Mutant(
        "a residual is taken for shorter than it is",
        "learn/queries.py",
        "ResidualSum.bound",
        "math.sqrt(2.0)",
        "1.0",
        ("learn/test_second_order.py::test_softmax_curves_the_most_at_three_equal_probabilities",),
    ),
    # Noise.
    Mutant(
        "noise ends where eight bits of its tail do",
        "privacy/release/noise.py",
        "_normal_tail_uniforms",
        "np.maximum(floats, 0.5)",
        "np.maximum(floats, 2.0**55)",
        ("privacy/release/test_noise.py::test_noise_reaches_as_far_out_as_64_bits_of_places_say",),
    ),
    Mutant(
        "one noise for both test counts",
        "learn/counts.py",
        "ask",
        "meter.publish(question.query.name, sum_of(question, data, constants))",
        "sum_of(question, data, constants) + "
        "meter.publish(question.query.name, 0.0 * sum_of(question, data, constants)).flat[0]",
        attack("evaluate"),
    ),
    Mutant(
        "bins of scores leave as they are",
        "learn/counts.py",
        "ask",
        "meter.publish(question.query.name, sum_of(question, data, constants))",
        "meter.publish(question.query.name, sum_of(question, data, constants)) * "
        "(question.query.name != 'scores') + sum_of(question, data, constants) * "
        "(question.query.name == 'scores')",
        attack("evaluate"),
    ),
    Mutant(
        "counts by class and bins of scores cost as much as one of them",
        "learn/measures/tables.py",
        "questions_of",
        "mu if len(tables) == 1 else mu * math.sqrt(MORE)",
        "mu",
        ("jobs/test_evaluate.py",),
    ),
    Mutant(
        "a record's shares are not cut to one together",
        "learn/counts.py",
        "add_up",
        "cut / np.maximum(cut.sum(axis=2, keepdims=True), 1.0)",
        "cut",
        (
            f"{MEASURES}"
            "::test_a_record_adds_no_more_than_its_query_declares_whatever_its_shares_are",
        ),
    ),
    Mutant(
        "what is no number moves a count further",
        "learn/counts.py",
        "add_up",
        "np.clip(np.nan_to_num(shares, nan=0.0), 0.0, 1.0)",
        "np.minimum(np.nan_to_num(shares, nan=0.0), 1.0)",
        (
            f"{MEASURES}"
            "::test_a_record_adds_no_more_than_its_query_declares_whatever_its_shares_are",
        ),
    ),
    Mutant(
        "a record's cells hang on who else is there",
        "learn/counts.py",
        "add_up",
        "np.floor(cut / np.maximum(cut.sum(axis=2, keepdims=True), 1.0) * FINEST) / FINEST",
        "np.floor(cut / np.maximum(cut.sum(axis=2, keepdims=True).max(initial=0.0), 1.0) * FINEST)"
        " / FINEST",
        (
            f"{MEASURES}"
            "::test_a_record_adds_no_more_than_its_query_declares_whatever_its_shares_are",
        ),
    ),
    Mutant(
        "a record of several findings counts once for each in its confidence",
        "learn/measures/tables.py",
        "Confidence.places",
        "known / np.maximum(known.sum(axis=1, keepdims=True), 1)",
        "known / known.shape[1]",
        (f"{MEASURES}::test_of_findings_each_that_is_known_is_an_even_part_of_its_record",),
    ),
    Mutant(
        "bins of confidence hang on what rounding makes of other records",
        "learn/scorers.py",
        "ClassScorer.confidences",
        "self.of or row_by_row_logits",
        "self.of or __import__('dpladder.learn.score', fromlist=['logits']).logits",
        (f"{MEASURES}::test_one_record_more_moves_no_other_ones_confidence",),
    ),
    Mutant(
        "a record counts in every block of a table",
        "learn/counts.py",
        "add_up",
        "np.add.at(row, places[:, block][inside], cut[:, block][inside])",
        "np.add.at(table.T, places[:, block][inside], cut[:, block][inside].reshape(-1, 1))",
        (
            "learn/test_findings.py"
            "::test_no_unit_moves_counts_of_findings_further_than_their_noise_is_for",
        ),
    ),
    Mutant(
        "records of groups that are not counted are counted",
        "jobs/evaluate.py",
        "Groups.restrict",
        "replace(data, labels=np.where(groups >= 0, data.labels, -1), groups=groups)",
        "replace(data, groups=groups)",
        ("jobs/test_evaluate.py",),
    ),
    Mutant(
        "a record without a group is one of the first group's",
        "jobs/evaluate.py",
        "Groups.restrict",
        "np.full(len(self.names) + 1, -1, np.int64)",
        "np.zeros(len(self.names) + 1, np.int64)",
        ("jobs/test_evaluate.py::test_groups_of_a_test_are_numbered_as_they_are_counted",),
    ),
    Mutant(
        "groups that are told apart are noised as if there were one",
        "learn/measures/tables.py",
        "ByGroup.shape",
        "(len(model.groups.counted), 2)",
        "(1, 2)",
        (
            "jobs/test_evaluate.py"
            "::test_groups_cost_one_count_and_the_accuracy_is_of_those_trained_on",
        ),
    ),
    Mutant(
        "another one's model is tested on what would be trained on",
        "plan/rule_specs.py",
        "_test",
        "'test'",
        "'train'",
        ("plan/test_plan.py::test_a_job_opens_the_private_parts_that_it_pays_for_and_no_others",),
    ),
    Mutant(
        "a public head is trained on private labels",
        "plan/rule_specs.py",
        "_start",
        "'sample'",
        "'train'",
        ("plan/test_plan.py::test_what_is_found_for_nothing_is_found_in_public_sources",),
    ),
    Mutant(
        "a row takes another one's place from another group",
        "data/prepare.py",
        "_rows",
        "prf(keys.units, b'rank', content, bytes([part]), str(label).encode(), *of_group)",
        "prf(keys.units, b'rank', content, bytes([part]), str(label).encode())",
        ("data/test_prepare.py",),
    ),
    Mutant(
        "groups that are not trained on are trained on",
        "data/prepare.py",
        "Sorter.takes",
        "elsewhere or not self.trained or self.names[group] in self.trained",
        "True",
        ("data/test_prepare.py",),
    ),
    Mutant(
        "every part that a job reads is taken for public",
        "plan/job_identity.py",
        "",
        "[part for part in request.parts if is_public(request.config, part)]",
        "[*request.parts]",
        ("plan/test_plan.py::test_a_part_is_public_by_a_source_of_its_own_alone",),
    ),
    Mutant(
        "corrupted images of the private test part pass for public",
        "plan/rule_specs.py",
        "is_public",
        "_public_sources(config).get(records_of(config, part)) is not None",
        "part.startswith(ALSO) or _public_sources(config).get(part) is not None",
        ("plan/test_plan.py",),
    ),
    Mutant(
        "a release counts its own test part exactly where the data is declared public",
        "config/model.py",
        "Config.exact_test",
        "self.mode == 'research'",
        "self.dataset.declared_public",
        ("plan/test_plan.py::test_research_counts_its_tests_exactly_and_pays_for_trainings_alone",),
    ),
    Mutant(
        "a private test part is counted exactly",
        "plan/job_identity.py",
        "",
        "all((counts_exactly(request.config, part) for part in request.parts))",
        "True",
        ("jobs/test_evaluate.py::test_what_is_measured_costs_what_was_reserved[accuracy]",),
    ),
    Mutant(
        "a private test part is charged nothing",
        "plan/rule_specs.py",
        "counts_exactly",
        "config.exact_test",
        "True",
        ("plan/test_plan.py::test_a_job_opens_the_private_parts_that_it_pays_for_and_no_others",),
    ),
    Mutant(
        "the test part's count forgets what further ones cost",
        "plan/cost.py",
        "_test_mu",
        "min(left, beside)",
        "left",
        ("plan/test_plan.py",),
    ),
    Mutant(
        "one noise for the scores of all runs of a naive search",
        "searches/naive_composition/search.py",
        "Searcher.run",
        "meter.publish('score', [answer.correct for answer in answers])",
        "[a.correct for a in answers] + meter.publish('score', [0] * len(answers))[0]",
        ("search/test_score_noise.py",),
    ),
    Mutant(
        "one noise for the scores of all secret runs",
        "search/secret_runs.py",
        "Chance.scores",
        "len(counts)",
        "1",
        ("search/test_score_noise.py",),
    ),
    Mutant(
        "scores of secret runs without noise",
        "search/secret_runs.py",
        "Chance.scores",
        "self.noise.add_to(counts, self.noise.values[:len(counts)])",
        "counts",
        ("search/test_score_noise.py",),
    ),
    Mutant(
        "one noise for the scores of a ladder's rung",
        "research/ladder.py",
        "LadderSearcher.run",
        "meter.publish(f'score {rung}', [answer.correct for answer in answers])",
        "[a.correct for a in answers] + meter.publish(f'score {rung}', [0] * number)[0]",
        ("search/test_score_noise.py",),
    ),
    Mutant(
        "one noise for all trials of a pass",
        "learn/curator.py",
        "Curator._answer",
        "_publish_sum(seat.meter, question.query, total)",
        "_publish_sum(questions[0][0].meter, question.query, total)",
        ("learn/test_linear.py::test_many_trials_over_one_pass_equal_trials_alone",),
    ),
    Mutant(
        "all trainings of a search share their noise",
        "jobs/private_search.py",
        "_meters.inner",
        "training.name",
        "'0'",
        ("jobs/test_private_search.py::test_every_training_draws_noise_of_its_own",),
    ),
    Mutant(
        "another head to start from is the same question, with the same noise",
        "jobs/features.py",
        "shared_inputs",
        "name != 'weights'",
        "name not in ('weights', 'start')",
        ("jobs/test_features.py::test_another_file_behind_a_training_is_another_question",),
    ),
    Mutant(
        "a language model's losses are not clipped",
        "learn/scorers.py",
        "shares_of_losses",
        "np.clip(np.nan_to_num(losses, nan=most, posinf=most, neginf=0.0), 0.0, most)",
        "np.nan_to_num(losses, nan=most, posinf=most, neginf=0.0)",
        (
            "learn/test_score.py::test_a_loss_counts_as_a_share_of_the_bound_whatever_it_is",
            "audits/test_kinds.py::test_every_kind_passes_a_short_audit[scores]",
        ),
    ),
    Mutant(
        "a language model's losses are clipped at twice the bound",
        "learn/scorers.py",
        "shares_of_losses",
        "1.0",
        "2.0",
        ("learn/test_score.py::test_a_loss_counts_as_a_share_of_the_bound_whatever_it_is",),
    ),
    Mutant(
        "a prediction that is a tie hangs on how many records there are",
        "learn/scorers.py",
        "ClassScorer._logits",
        "self.of or position_independent_logits",
        "self.of or __import__('dpladder.learn.score', fromlist=['logits']).logits",
        ("learn/test_score.py::test_one_record_more_tips_no_other_ones_tie",),
    ),
    Mutant(
        "a network's prediction that is a tie hangs on its place",
        "learn/finetune/predict.py",
        "_logits",
        "row_by_row_logits((head,), seen)",
        "_model_outputs(learner, constants, weights, features, size=ROWS, "
        "width=(constants.classes,))",
        ("learn/test_score.py::test_a_networks_head_is_summed_row_by_row_to_the_last_bit",),
    ),
    Mutant(
        "a score is released as it is",
        "learn/counts.py",
        "ask",
        "meter.publish(question.query.name, sum_of(question, data, constants))",
        "0 * meter.publish(question.query.name, sum_of(question, data, constants)) + "
        "sum_of(question, data, constants)",
        attack("run_trial"),
    ),
    Mutant(
        "half the noise",
        "privacy/release/noise.py",
        "gaussian.block",
        "np.concatenate([(radius * cosine).sum(axis=0), (radius * sine).sum(axis=0)]) / 2.0",
        "np.concatenate([(radius * cosine).sum(axis=0), (radius * sine).sum(axis=0)]) / 4.0",
        attack("estimate_mean"),
    ),
    Mutant(
        "every draw under a name is the first",
        "privacy/release/meter.py",
        "Meter._take_stream",
        "self.source.stream(name, index)",
        "self.source.stream(name, 0)",
        attack("estimate_statistics"),
    ),
    Mutant(
        "streams that do not hang on the nonce",
        "privacy/release/noise.py",
        "SecretNoise.stream",
        "self.nonce",
        "''",
        attack("estimate_mean"),
    ),
    Mutant(
        "streams that do not hang on the query",
        "privacy/release/noise.py",
        "SecretNoise.stream",
        "self.query",
        "''",
        attack("estimate_mean"),
    ),
    Mutant(
        "streams that do not hang on the draw's name",
        "privacy/release/noise.py",
        "SecretNoise.stream",
        "[self.query, self.nonce, name, index]",
        "[self.query, self.nonce, index]",
        attack("estimate_statistics"),
    ),
    Mutant(
        "one nonce for all queries",
        "privacy/ledger/book.py",
        "_commit.decide",
        "secrets.token_hex(16)",
        "'0' * 32",
        ("privacy/ledger/test_book.py::test_parts_of_versions_that_follow_each_other_add_up",),
    ),
    Mutant(
        "units that came later count, which may lie in another part than they did",
        "jobs/features.py",
        "read_raw",
        "first in (None, part.units)",
        "True",
        (
            "jobs/test_features.py"
            "::test_of_a_version_those_alone_count_who_were_there_when_it_was_first_asked",
        ),
    ),
    Mutant(
        "the last commit on a version says who belongs to it",
        "privacy/ledger/state.py",
        "fold",
        "state.first_units.setdefault(spend.partition.version, body['units'])",
        "state.first_units[spend.partition.version] = body['units']",
        ("privacy/ledger/test_book.py::test_the_first_commit_on_a_version_says_who_belongs_to_it",),
    ),
    Mutant(
        "no commit says whose records a version holds",
        "jobs/release.py",
        "ReleaseRequest.question",
        "self._units()",
        "''",
        ("workflow/test_reexecution.py::test_data_that_changed_is_answered_by_what_is_kept",),
    ),
    Mutant(
        "versions of the data compose in parallel",
        "plan/cost.py",
        "partition",
        "partition_version(config.dataset.version)",
        "''",
        ("plan/test_plan.py::test_versions_of_the_data_add_and_parts_of_one_do_not",),
    ),
    Mutant(
        "a question says which records it was asked of",
        "jobs/features.py",
        "part_of",
        "map_of_cache(attrs)",
        "seal.hex()",
        ("workflow/test_reexecution.py::test_a_query_says_nothing_of_the_records",),
    ),
    Mutant(
        "the name of a map to features names the records",
        "data/cache.py",
        "",
        "RECORDS = ('commitment', 'units')",
        "RECORDS = ('units',)",
        ("workflow/test_reexecution.py::test_a_query_says_nothing_of_the_records",),
    ),
    Mutant(
        "noise that does not follow the committed nonce",
        "privacy/release/store.py",
        "_work_of_question",
        "str(charge.nonce)",
        "'nonce'",
        ("privacy/release/test_store.py::test_the_noise_is_that_of_the_committed_nonce",),
    ),
    Mutant(
        "everybody's sample is the same half",
        "privacy/release/noise.py",
        "mask",
        "probability * 2.0 ** 53",
        "2.0 ** 52",
        ("privacy/release/test_noise.py::test_masks_meet_their_probability_and_grow_with_it",),
    ),
    # The public grid.
    Mutant(
        "a release is not rounded",
        "privacy/release/grid.py",
        "add_noise_on_grid",
        "(cells - whole + noise * (scale / step)).round()",
        "cells - whole + noise * (scale / step)",
        ("privacy/release/test_grid.py",),
    ),
    Mutant(
        "a grid as fine as floats",
        "privacy/release/grid.py",
        "",
        "8",
        "2.0 ** 60",
        ("privacy/release/test_grid.py",),
    ),
    Mutant(
        "the slack of normals, said of Laplace noise too",
        "privacy/release/grid.py",
        "",
        "2.0 ** -37",
        "2.0 ** -38",
        ("privacy/release/test_grid.py",),
    ),
    Mutant(
        "angles in single precision",
        "privacy/release/noise.py",
        "_angle",
        "2.0 * math.pi * _unit(words)",
        "(2.0 * math.pi * _unit(words)).astype(np.float32).astype(float)",
        (
            "privacy/release/test_noise.py::test_far_out_samples_are_as_near_to_exact_ones"
            "_as_the_theorem_of_the_grid_needs",
        ),
    ),
    Mutant(
        "counts and means are noised beside the grid",
        "learn/counts.py",
        "ask",
        "meter.publish(question.query.name, sum_of(question, data, constants))",
        "meter.publish(question.query.name, 0.0 * sum_of(question, data, constants)) + "
        "sum_of(question, data, constants)",
        ("privacy/release/test_grid.py",),
    ),
    Mutant(
        "counts are asked that nobody declared",
        "learn/counts.py",
        "refuse_undeclared",
        "not meter.declares(query.draw(constants))",
        "False",
        ("learn/test_score.py::test_a_score_that_costs_more_than_was_declared_is_refused",),
    ),
    Mutant(
        "a scorer's word is taken for what a record counts",
        "learn/counts.py",
        "right_counts",
        "np.clip(np.nan_to_num(shares, nan=0.0), 0.0, 1.0)",
        "shares",
        ("learn/test_score.py::test_a_record_counts_from_0_to_1_whatever_a_scorer_says_of_it",),
    ),
    # Charges.
    Mutant(
        "a trial's score is not charged",
        "jobs/run_trial.py",
        "Prepared.release_request",
        "spends += self.reservation.actual_spends('score', counted.events)",
        "pass",
        attack("run_trial"),
    ),
    Mutant(
        "the last candidate is not charged",
        "plan/cost.py",
        "sweep_costs",
        "rule_specs.jobs(config, 'run_trial')",
        "rule_specs.jobs(config, 'run_trial')[:-1]",
        (f"{CHOICE}::test_every_candidate_is_charged_for_its_training_and_its_count[by hand]",),
    ),
    Mutant(
        "a trial is known by the version of one learner alone",
        "plan/rule_specs.py",
        "learner_names",
        "names or (rule_reads.learner.name,)",
        "(rule_reads.learner.name,)",
        (f"{CHOICE}::test_a_trial_is_known_by_the_versions_of_all_learners_that_are_tried",),
    ),
    Mutant(
        "a candidate that trains on samples is tried as one on full batches",
        "config/candidates.py",
        "_learners",
        "learner.purchases or (learner.sampling, learner.views) != (of_config.sampling, of_config.views)",
        "learner.purchases",
        (f"{CHOICE}::test_a_learner_that_samples_by_itself_is_no_candidate",),
    ),
    Mutant(
        "a mean is paid for anew when candidates are named in another order",
        "plan/candidates.py",
        "tried_layers",
        "sorted(choose.features.layers, key=str)",
        "[*choose.features.layers]",
        (f"{CHOICE}::test_candidates_in_another_order_share_the_mean_that_was_paid_for",),
    ),
    Mutant(
        "candidates are chosen by counts without noise",
        "jobs/run_trial.py",
        "_write",
        "float(released)",
        "float(counts.right_counts(scorer, [trained], counted)[0])",
        (CHOSEN,),
    ),
    Mutant(
        "a winner's count stands for the count of the final model",
        "jobs/summarise.py",
        "summarise",
        "targets, classes = _targets(task), _classes(task)",
        """targets, classes = _targets(task), _classes(task)
scored = rungs[-1].trials[rungs[-1].best.trial].share if rungs else 0.0
targets = tuple(replace(one, test=replace(one.test, accuracy=scored)) for one in targets)""",
        (CHOSEN,),
    ),
    Mutant(
        "commit does not join draws and charges",
        "privacy/ledger/book.py",
        "commit",
        """charged = [Counted(spend.event, spend.count) for spend in concrete]
check_charge_matches_noise(charged, draws, 'replace_one' if replaced else 'add_remove')""",
        "charged = [Counted(spend.event, spend.count) for spend in concrete]",
        (
            "privacy/ledger/test_book.py"
            "::test_noise_for_another_charge_is_not_committed_and_nothing_is_written",
        ),
    ),
    Mutant(
        "one charge pays for two draws",
        "privacy/accounting/draws.py",
        "_events_match",
        "left.remove(drawn)",
        "left.pop()",
        ("privacy/accounting/test_draws.py::test_no_noise_escapes_the_count_by_where_it_lies",),
    ),
    Mutant(
        "noise may lie under anything",
        "privacy/accounting/draws.py",
        "_check_places",
        "not counted or often or again or loose or free",
        "often or again or loose or free",
        ("privacy/accounting/test_draws.py::test_no_noise_escapes_the_count_by_where_it_lies",),
    ),
    Mutant(
        "draws are joined to charges whatever they cost",
        "privacy/accounting/draws.py",
        "check_charge_matches_noise",
        "_direct_draws_match(events, draws) and _subset_masks_match(events, draws)",
        "_subset_masks_match(events, draws)",
        ("privacy/accounting/test_draws.py",),
    ),
    Mutant(
        "a job may spend more than it reserved",
        "privacy/ledger/book.py",
        "_commit.decide",
        """check_spends(terms, job, concrete)
check_within(charge, concrete, job)""",
        "check_spends(terms, job, concrete)",
        ("privacy/ledger/test_book.py",),
    ),
    Mutant(
        "a secret number of runs may be drawn by another law than is charged",
        "privacy/accounting/draws.py",
        "_selects",
        "same and _is_equal(mu(charged.event) or math.nan, mu(drawn.event) or math.nan)",
        "_is_equal(mu(charged.event) or math.nan, mu(drawn.event) or math.nan)",
        ("privacy/accounting/test_draws.py",),
    ),
    Mutant(
        "what was reserved for units by one column reads those by another",
        "privacy/ledger/book.py",
        "admit",
        "all(state.units.get(version, units) == units for version in _versions(item.spends)) and "
        "(h.declared, h.versions, h.code) == (item.spends, item.versions, item.code)",
        "(h.declared, h.versions, h.code) == (item.spends, item.versions, item.code)",
        ("privacy/ledger/test_book.py",),
    ),
    Mutant(
        "a log tells what is for the owner's eyes",
        "errors.py",
        "DpladderError.__init__",
        "super().__init__(message)",
        "super().__init__(f'{message} {private}')",
        ("data/test_columns.py",),
    ),
    Mutant(
        "noise under a number of runs without a law is free",
        "privacy/accounting/draws.py",
        "_check_places",
        "not draw.under or (over in _OVER.get(draw.distribution, ()) and not lawless)",
        "not draw.under or over in _OVER.get(draw.distribution, ())",
        ("privacy/accounting/test_draws.py::test_no_noise_escapes_the_count_by_where_it_lies",),
    ),
    Mutant(
        "trainings may be charged for another mu than their meters ask for",
        "privacy/accounting/draws.py",
        "Draw.__post_init__",
        "(self.scale, self.stack) != (1.0, 1)",
        "False",
        ("privacy/accounting/test_draws.py",),
    ),
    Mutant(
        "the filter looks at the dearest units alone",
        "privacy/ledger/limits.py",
        "lifetime_problem",
        "need.mu <= limit.mu",
        "compose(paid + wanted, terms.delta).entry.mu <= limit.mu",
        ("privacy/ledger/test_book.py",),
    ),
    Mutant(
        "units may be known by another column than before",
        "privacy/ledger/book.py",
        "reserve.decide",
        "check_units(ledger, state, new, units, replaced)",
        "pass",
        ("privacy/ledger/test_book.py",),
    ),
    Mutant(
        "commit does not ask the lifetime",
        "privacy/ledger/book.py",
        "_commit.decide",
        """check_within(charge, concrete, job)
check_lifetime(terms, state.charged_spends(token), concrete)""",
        "check_within(charge, concrete, job)",
        ("privacy/ledger/test_book.py::test_commit_asks_the_lifetime_once_more",),
    ),
    Mutant(
        "a plan does not ask the lifetime",
        "privacy/ledger/book.py",
        "admit",
        "check_lifetime(terms, state.charged_spends(*replaced), wanted)",
        "pass",
        ("privacy/ledger/test_book.py::test_all_of_a_plan_is_reserved_or_nothing",),
    ),
    Mutant(
        "only what is done is charged",
        "privacy/ledger/state.py",
        "State.charged_spends",
        "h.status != 'REFUNDED'",
        "h.status == 'DONE'",
        ("privacy/ledger/test_book.py::test_an_item_is_charged_from_reservation_on",),
    ),
    Mutant(
        "what was used can be refunded",
        "privacy/ledger/book.py",
        "refund.decide",
        "h.used",
        "h.status == 'DONE'",
        (
            "privacy/ledger/test_book.py"
            "::test_only_an_unused_reservation_is_refunded_and_then_it_is_gone",
        ),
    ),
    Mutant(
        "a draw more than declared is made",
        "privacy/release/meter.py",
        "Meter._take_stream",
        "index == draw.count",
        "index == draw.count + 1",
        ("privacy/release/test_meter.py",),
    ),
    Mutant(
        "draws that were declared need not be made",
        "privacy/release/meter.py",
        "Meter.close",
        "draw.count",
        "0",
        ("privacy/release/test_meter.py",),
    ),
    Mutant(
        "a training inside a search declares whatever it likes",
        "privacy/release/meter.py",
        "Within.meter",
        "self.mu and (beside or not math.isclose(cost(draws), self.mu, rel_tol=EQUAL))",
        "not self.mu and (beside or not math.isclose(cost(draws), self.mu, rel_tol=EQUAL))",
        ("privacy/release/test_meter.py",),
    ),
    Mutant(
        "a search makes more trainings than it declares",
        "privacy/release/meter.py",
        "Within.meter",
        "self.mu and next(self.numbers) >= self.most",
        "False",
        ("privacy/release/test_meter.py",),
    ),
    Mutant(
        "the final training takes the whole total, searched or not",
        "research/ladder.py",
        "Climbed.final",
        "gdp.remaining(self.total, self.trials)",
        "self.total",
        ("search/test_hpo.py",),
    ),
    Mutant(
        "what went before is forgotten where the remainder is solved",
        "plan/cost.py",
        "_remaining_mu",
        "before",
        "[]",
        ("plan/test_plan.py::test_the_demo_spends_its_total_and_not_a_hair_more",),
    ),
    Mutant(
        "a trial's score is not paid for out of its rung",
        "plan/cost.py",
        "trial_budget",
        "gdp.remaining(total, [score])",
        "total",
        ("plan/test_plan.py::test_a_trial_costs_its_rungs_epsilon_score_included",),
    ),
    # Composition and accounting.
    Mutant(
        "delta0 is forgotten where entries add",
        "privacy/accounting/booking.py",
        "total",
        "math.fsum((e.delta0 for e in every))",
        "0.0",
        ("privacy/accounting/test_booking.py",),
    ),
    Mutant(
        "delta0 is forgotten where epsilon is read off",
        "privacy/accounting/booking.py",
        "epsilon",
        "delta - entry.delta0",
        "delta",
        ("privacy/accounting/test_booking.py",),
    ),
    Mutant(
        "what a trial on samples is booked at is forgotten in its budget",
        "plan/cost.py",
        "_delta0",
        "not samples(config)",
        "True",
        ("plan/test_plan.py::test_a_training_on_samples_is_booked_inside_its_epsilon",),
    ),
    Mutant(
        "trainings on samples are booked at the default share, whatever is declared",
        "plan/cost.py",
        "_delta0",
        "booking.SAMPLED_SHARE if share is None else share",
        "booking.SAMPLED_SHARE",
        ("plan/test_plan.py::test_trainings_on_samples_are_booked_at_the_declared_share",),
    ),
    Mutant(
        "events booked at delta0 may cost more where delta0 is less",
        "privacy/accounting/booking.py",
        "dominating",
        "bound <= room",
        "bound <= room + 1e-6",
        (
            "privacy/accounting/test_booking.py::"
            "test_few_steps_on_samples_are_stated_at_no_less_than_they_cost_and_little_more",
        ),
    ),
    Mutant(
        "a selection's weight multiplies nothing",
        "privacy/accounting/booking.py",
        "_entry_of_selection",
        "max(0.0, count * weight)",
        "0.0",
        (
            "privacy/accounting/test_booking.py"
            "::test_the_best_of_a_secret_number_of_runs_keeps_its_own_figure",
        ),
    ),
    Mutant(
        "the mean number of runs is no weight",
        "privacy/accounting/selection.py",
        "weight",
        "lean.high * runs.mean",
        "lean.high",
        ("privacy/accounting/test_selection.py",),
    ),
    Mutant(
        "the weight of ranks does not move",
        "privacy/accounting/selection.py",
        "loss",
        "math.log(lean.high / lean.low) + rank_loss(mu, runs, lean)",
        "math.log(lean.high / lean.low)",
        ("privacy/accounting/test_selection.py",),
    ),
    Mutant(
        "a leaning proposal costs nothing",
        "privacy/accounting/selection.py",
        "loss",
        "math.log(lean.high / lean.low) + rank_loss(mu, runs, lean)",
        "rank_loss(mu, runs, lean)",
        (
            "privacy/accounting/test_selection.py"
            "::test_a_lean_enlarges_every_weight_by_its_upper_end",
        ),
    ),
    Mutant(
        "a law near the Poisson one costs what rounding leaves of it",
        "privacy/accounting/selection.py",
        "_scale",
        "-math.expm1(-shape * stopped) / shape if shape else stopped",
        "(1.0 - (1.0 + odds) ** -shape) / shape if shape else stopped",
        (
            "privacy/accounting/test_selection.py"
            "::test_laws_near_the_logarithmic_and_the_poisson_one_cost_what_they_do",
        ),
    ),
    Mutant(
        "the number of runs is public",
        "privacy/accounting/selection.py",
        "number",
        "uniform",
        "0.5",
        ("privacy/accounting/test_selection.py",),
    ),
    Mutant(
        "tuning on a subset looks in one direction",
        "privacy/accounting/subset.py",
        "_larger_direction",
        "np.maximum((more * masses).sum(1) + infinite, (less * masses).sum(1))",
        "(more * masses).sum(1) + infinite",
        (
            "privacy/accounting/test_booking.py"
            "::test_tuning_on_a_subset_is_tighter_than_by_renyi_divergences_term_by_term",
        ),
    ),
    Mutant(
        "tuning on a subset looks in the other direction",
        "privacy/accounting/subset.py",
        "_larger_direction",
        "np.maximum((more * masses).sum(1) + infinite, (less * masses).sum(1))",
        "(less * masses).sum(1)",
        ("privacy/accounting/test_booking.py",),
    ),
    Mutant(
        "the final training sees the subset too",
        "searches/koskela_kulkarni/search.py",
        "Searcher.run",
        "~subset if selected.apart else None",
        "None",
        ("search/test_hpo.py::test_tuning_on_a_subset_keeps_the_final_training_apart",),
    ),
    Mutant(
        "parts overlap",
        "searches/propose_test/search.py",
        "_deal",
        """dealt.append(left & mask)
left = left & ~mask""",
        "dealt.append(left & mask)",
        ("search/test_hpo.py::test_parts_are_disjoint_and_tested_on_records_set_aside",),
    ),
    Mutant(
        "a part's model moves no mean",
        "searches/propose_test/search.py",
        "Searcher._sensitivity",
        "max(1 / section.parts, 1 / (section.aside * constants.n0))",
        "1 / (section.aside * constants.n0)",
        ("search/test_score_noise.py::test_a_test_has_the_noise_of_above_threshold",),
    ),
    Mutant(
        "comparisons with a level move by what one utility moves",
        "searches/propose_test/search.py",
        "Searcher.declare",
        "Draw('utility', 'laplace', 4 * moves / epsilon0, shape, 1, 2 * moves, under='rounds')",
        "Draw('utility', 'laplace', 2 * moves / epsilon0, shape, 1, moves, under='rounds')",
        ("search/test_score_noise.py::test_a_test_has_the_noise_of_above_threshold",),
    ),
    Mutant(
        "utilities are not cut off at 1",
        "searches/propose_test/search.py",
        "Searcher.run",
        "np.minimum(correct / size, 1.0)",
        "correct / size",
        ("search/test_score_noise.py::test_no_record_set_aside_moves_a_utility_beyond_one",),
    ),
    Mutant(
        "a replaced unit touches one part of a split",
        "privacy/accounting/composition.py",
        "_choices",
        "2 if relation == 'replace_one' else 1",
        "1",
        ("privacy/accounting/test_composition.py",),
    ),
    Mutant(
        "the test part costs nothing beside the training part under replace_one",
        "plan/cost.py",
        "_parallel",
        "config.dataset.split.rule == 'hash' and config.privacy.relation == 'add_remove'",
        "config.dataset.split.rule == 'hash'",
        ("plan/test_plan.py::test_every_artifact_of_every_plan_stays_within_its_total",),
    ),
    Mutant(
        "given parts compose in parallel from version to version",
        "plan/cost.py",
        "partition",
        "f\"given {' '.join(parts)}\".strip()",
        "'given'",
        ("plan/test_plan.py::test_parts_as_given_add_because_the_next_version_may_give_others",),
    ),
    Mutant(
        "Laplace releases do not compose",
        "privacy/accounting/booking.py",
        "price",
        "_laplace_mu(1.0 / scale) * math.sqrt(count)",
        "_laplace_mu(1.0 / scale)",
        ("privacy/accounting/test_composition.py::test_equal_events_each_count",),
    ),
    Mutant(
        "sampled replacement is priced as removal",
        "privacy/accounting/booking.py",
        "_loss_distribution_of",
        "2.0 if relation == 'replace_one' else 1.0",
        "1.0",
        (
            "privacy/accounting/test_booking.py"
            "::test_sampled_replacement_is_the_worst_pair_of_mixtures",
        ),
    ),
    Mutant(
        "sigma forgets the steps",
        "privacy/accounting/gdp.py",
        "sigma",
        "math.sqrt(steps)",
        "1.0",
        ("privacy/accounting/test_gdp.py",),
    ),
    # Several views of a record.
    Mutant(
        "views are added up, not averaged",
        "learn/linear.py",
        "_sum",
        "scale(norms, bound) * records.counted[chunk] / views",
        "scale(norms, bound) * records.counted[chunk]",
        ("learn/test_linear.py::test_what_a_record_adds_to_a_crowd_stays_within_the_bound",),
    ),
    Mutant(
        "a record's norm is its first view's",
        "learn/linear.py",
        "gradient_norms",
        """if views == 1:
    return lengths[..., 0]""",
        """if views >= 1:
    return lengths[..., 0] / views""",
        ("learn/test_linear.py::test_what_a_record_adds_to_a_crowd_stays_within_the_bound",),
    ),
    Mutant(
        "more records than there is room for are added up in float32",
        "learn/records.py",
        "Records.as_summable",
        "self.exact or factor.is_cuda",
        "factor.is_cuda",
        ("learn/test_linear.py::test_what_is_more_than_there_is_room_for_is_added_up_in_float64",),
    ),
    Mutant(
        "there is room for the declared records alone",
        "learn/records.py",
        "load",
        "slack(MANY * declared * views)",
        "slack(declared * views)",
        ("learn/test_linear.py::test_there_is_room_for_several_times_the_declared_records",),
    ),
    Mutant(
        "a record without an id is parted by the label that an experiment reads",
        "data/prepare.py",
        "_content_key",
        "source.line is None",
        "source.labels is not None",
        ("data/test_identity.py::test_what_an_experiment_reads_of_a_table_moves_no_record",),
    ),
    Mutant(
        "versions of the data hang on the groups that an experiment trains on",
        "data/prepare.py",
        "_rows",
        "everybody.add(unit)",
        "everybody.add(unit) if part >= 0 and label >= 0 else None",
        ("data/test_identity.py::test_what_an_experiment_reads_of_a_table_moves_no_record",),
    ),
    Mutant(
        "experiments with other views share what stands on them",
        "plan/job_identity.py",
        "identity",
        "keys | seen",
        "keys",
        ("plan/test_plan.py::test_what_stands_on_other_views_is_shared_by_nobody",),
    ),
    Mutant(
        "whose a job is is remembered for all jobs of its rule",
        "plan/job_identity.py",
        "owner",
        "job(experiment, rule, wildcards)",
        "job(experiment, rule, {})",
        ("plan/test_plan.py::test_what_stands_on_other_views_is_shared_by_nobody",),
    ),
    # Mechanisms that are not ours (external_ledger/).
    Mutant(
        "every attempt of other code asks one question",
        "external_ledger/charge.py",
        "Charge.commit",
        "secrets.token_hex(32)",
        "'0' * 64",
        ("external_ledger/test_ledger.py::test_what_is_paid_for_is_paid_again_only_on_demand",),
    ),
    Mutant(
        "a charge of other code may be drawn on before COMMIT",
        "external_ledger/charge.py",
        "Charge._require_committed",
        "self.status != 'COMMITTED'",
        "False",
        ("external_ledger/test_ledger.py::test_nothing_is_drawn_before_commit",),
    ),
    Mutant(
        "a fork draws on its parent's charge",
        "external_ledger/charge.py",
        "Charge._refuse_fork",
        "os.getpid() != self._process",
        "False",
        ("external_ledger/test_ledger.py::test_a_fork_cannot_use_its_parents_charge",),
    ),
    Mutant(
        "other code draws as often as it likes",
        "external_ledger/charge.py",
        "Charge._use",
        "left.count - 1",
        "left.count",
        ("external_ledger/test_ledger.py::test_noise_is_that_of_the_reserved_gaussians_alone",),
    ),
    Mutant(
        "a home may lie among what is published",
        "privacy/ledger/home.py",
        "refuse_home_inside",
        "home.path.resolve().is_relative_to(folder.resolve())",
        "home.path.is_relative_to(folder)",
        ("privacy/ledger/test_home.py::test_a_home_among_what_may_be_published_is_refused",),
    ),
    Mutant(
        "a private folder may lead to what is published",
        "config/check.py",
        "_path",
        "(os.path.abspath, os.path.realpath)",
        "(os.path.abspath,)",
        ("config/test_bad.py",),
    ),
    Mutant(
        "a picture may be of any format that Pillow finds",
        "data/images.py",
        "_open_image",
        "Image.open(BytesIO(content), formats=FORMATS)",
        "Image.open(BytesIO(content))",
        ("data/test_decoded.py::test_a_picture_starts_no_program",),
    ),
    Mutant(
        "an icon unpacks to what its header does not claim",
        "data/images.py",
        "_open_image",
        "Image.open(BytesIO(content), formats=FORMATS)",
        "Image.open(BytesIO(content), formats=[*FORMATS, 'ICO'])",
        ("data/test_decoded.py::test_a_picture_unpacks_to_no_more_than_its_header_claims",),
    ),
    Mutant(
        "a tile may be larger than an image",
        "data/images.py",
        "decode",
        "image.format == 'TIFF'",
        "False",
        ("data/test_decoded.py::test_a_picture_unpacks_to_no_more_than_its_header_claims",),
    ),
    Mutant(
        "an exported model starts what a picture asks for",
        "use/standalone.py",
        "Images._pixels",
        "Image.open(image, formats=FORMATS)",
        "Image.open(image)",
        ("data/test_decoded.py::test_a_picture_starts_no_program",),
    ),
    Mutant(
        "a chunk of a bag may be of any size",
        "data/bags.py",
        "_mean",
        "rows.chunks[0] * max(rows.chunks[1], width) > CHUNK",
        "False",
        ("data/test_decoded.py::test_a_bag_unpacks_to_no_more_than_is_allowed",),
    ),
    Mutant(
        "a bag may claim more than it holds",
        "data/bags.py",
        "_mean",
        "rows.size * rows.dtype.itemsize > DENSEST * rows.id.get_storage_size()",
        "False",
        ("data/test_decoded.py::test_a_bag_that_claims_more_than_it_holds_counts_as_nothing",),
    ),
    Mutant(
        "a quote that is not closed takes other rows along",
        "data/tables.py",
        "_rows_of",
        "if multiline:\n    return list(csv.DictReader(file, delimiter=delimiter))",
        "return list(csv.DictReader(file, delimiter=delimiter))",
        ("data/test_hostile.py::test_no_line_of_a_table_takes_another_one_along",),
    ),
    Mutant(
        "what a cell of several lines ends with is a row",
        "data/tables.py",
        "_cells_of",
        "re.fullmatch(f'{cell}(?:{delimiter}{cell})*', line) is None",
        "False",
        ("data/test_hostile.py::test_cells_hold_line_ends_where_a_key_says_so",),
    ),
    Mutant(
        "what is below -1 is of every class",
        "config/label_sets.py",
        "has_label",
        "numbers != numbers",
        "numbers < -1",
        ("config/test_label_sets.py::test_what_is_below_zero_is_of_no_class_and_has_no_finding",),
    ),
    Mutant(
        "what is below -1 has findings",
        "config/label_sets.py",
        "states_by_finding",
        "(state == PRESENT) & (numbers >= 0)",
        "state == PRESENT",
        ("config/test_label_sets.py::test_what_is_below_zero_is_of_no_class_and_has_no_finding",),
    ),
    Mutant(
        "a logit that is no number makes a share that is none",
        "learn/scorers.py",
        "shares_of_findings",
        "np.nan_to_num(logits[:, place])",
        "logits[:, place]",
        (
            "learn/test_findings.py"
            "::test_a_logit_that_is_no_number_moves_no_count_further_than_another",
        ),
    ),
    Mutant(
        "a network's look is measured by another size than is declared",
        "learn/finetune/descent.py",
        "sample_worth",
        "guide.worth(inputs.units, right, inputs.claim, look.scale(constants), constants)",
        "guide.worth(inputs.units, right, inputs.claim, look.scale(constants), "
        "constants.__class__(10, 2, 3))",
        (
            "learn/test_guided_network.py"
            "::test_a_networks_sample_is_worth_what_its_look_and_the_declared_size_say",
        ),
    ),
    Mutant(
        "a subset's runs are told how large it is",
        "searches/koskela_kulkarni/search.py",
        "Searcher.run",
        "Ask(r, plan.weights, subset, subset, share)",
        "Ask(r, plan.weights, subset, subset, float(subset.mean()))",
        ("search/test_hpo.py::test_nothing_follows_from_how_many_records_there_are",),
    ),
    Mutant(
        "utilities are shares of how many are set aside",
        "searches/propose_test/search.py",
        "Searcher.run",
        "section.aside * constants.n0 * constants.cap",
        "aside.sum() * constants.cap",
        ("search/test_hpo.py::test_nothing_follows_from_how_many_records_there_are",),
    ),
    Mutant(
        "the room for rounding is by how many records there are",
        "learn/records.py",
        "load",
        "slack(MANY * declared * views)",
        "slack(count * views)",
        ("audits/test_private_sizes.py::test_the_room_for_rounding_is_by_declaration",),
    ),
    Mutant(
        "verify looks at no file that a statement is about",
        "privacy/statement/check.py",
        "_changed_files",
        "file_digest(file) != digest",
        "False",
        ("privacy/statement/test_statement.py::test_other_bytes_in_a_models_place_are_found",),
    ),
    Mutant(
        "a model may lack a digest",
        "privacy/statement/check.py",
        "_check_files",
        "path not in stated.files",
        "False",
        ("privacy/statement/test_statement.py::test_other_bytes_in_a_models_place_are_found",),
    ),
    Mutant(
        "the page that is signed need not follow from the statement",
        "privacy/statement/check.py",
        "_check_page",
        "file.read_bytes() != page(stated).encode()",
        "False",
        (
            "privacy/statement/test_statement.py"
            "::test_an_edited_page_is_found_though_nobody_has_the_key",
        ),
    ),
    Mutant(
        "anybody may vouch for a report",
        "privacy/statement/check.py",
        "_check_files",
        "not is_sealed(document, key)",
        "False",
        ("workflow/test_verify.py::test_a_report_of_another_statement_is_named",),
    ),
    Mutant(
        "a card speaks for whatever lies in a model's place",
        "use/model.py",
        "_models",
        "statement.files.get(place) != file_digest(file)",
        "False",
        ("workflow/test_verify.py::test_no_card_repeats_a_statement_about_other_weights",),
    ),
    Mutant(
        "a stated figure is rounded to the nearest",
        "privacy/accounting/rounding.py",
        "_round_decimal",
        "nearest if abs(scaled - nearest) < NEGLIGIBLE else towards(scaled)",
        "nearest",
        ("privacy/statement/test_figures.py::test_no_figure_is_below_what_it_is_of",),
    ),
    Mutant(
        "a total that is no number bears no noise",
        "privacy/release/grid.py",
        "add_noise_on_grid",
        "cells = cells.nan_to_num() if hasattr(cells, 'nan_to_num') else np.nan_to_num(cells)",
        "pass",
        (
            "external_ledger/test_ledger.py"
            "::test_what_is_not_finite_counts_as_a_public_constant_and_bears_noise",
        ),
    ),
    Mutant(
        "a replaced record moves a sum of other code once",
        "external_ledger/mechanisms.py",
        "_sensitivity_factor",
        "2.0 if relation == 'replace_one' else 1.0",
        "1.0",
        (
            "external_ledger/test_mechanisms.py"
            "::test_a_charge_is_never_below_the_peers_figure_and_not_far_above",
        ),
    ),
    # Models that are measured on another lineage.
    Mutant(
        "other people are protected as those are that a model is of",
        "plan/resolve.py",
        "_follow_measured_config",
        "{**seen, 'sweep': sweep, 'final': final}",
        "{**seen, 'sweep': sweep, 'final': final, 'privacy': tested.privacy}",
        ("plan/test_plan.py::test_a_test_on_another_lineage_is_paid_by_that_lineage_alone",),
    ),
    Mutant(
        "a model that nobody released is paid for by other people",
        "jobs/reservation.py",
        "_check_releases",
        "not is_kept(ledger.home, Path(path), lineage)",
        "lineage is not None and (not is_kept(ledger.home, Path(path), lineage))",
        ("workflow/test_shift.py::test_what_nobody_released_is_counted_for_nobody",),
    ),
    # What changes what a mechanism answers: its version must rise.
    Mutant(
        "noise has larger cells",
        "privacy/release/grid.py",
        "",
        "8",
        "4",
        recorded("the grid"),
    ),
    Mutant(
        "HyFreeDP's bound leaves more room",
        "methods/hyfree_dp/train.py",
        "",
        "(2.0, 0.1, 4.0, 2.0)",
        "(2.0, 0.1, 4.0, 2.5)",
        recorded("the loss bound"),
    ),
    Mutant(
        "Adam divides by what may be zero",
        "methods/dp_adam/train.py",
        "adam.begin.update",
        "root.add_(stability)",
        "root",
        recorded("update of dp_adam"),
    ),
    Mutant(
        "Adam without second moment divides by noise alone",
        "methods/dp_adam_wosm/train.py",
        "first_moment.begin.update",
        "noise + learner.stability",
        "noise",
        (
            "golden/test_golden.py"
            "::test_a_mechanism_does_what_its_version_did[update of dp_adam_wosm]",
        ),
    ),
    Mutant(
        "kappa of dp_gd forgets momentum",
        "methods/dp_gd/queries.py",
        "logit_noise",
        "descent_noise.logit_noise(learner, steps, constants, learner.momentum)",
        "descent_noise.logit_noise(learner, steps, constants)",
        ("golden/test_golden.py::test_a_mechanism_does_what_its_version_did[dp_gd kappa at mu 2]",),
    ),
    Mutant(
        "the learning rate falls along another curve",
        "learn/descent_noise.py",
        "_paces",
        "(1 + math.cos(math.pi * share)) / 2",
        "math.cos(math.pi * share / 2)",
        ("golden/test_golden.py::test_a_mechanism_does_what_its_version_did[schedule cosine]",),
    ),
    Mutant(
        "noise streams come from a key without purpose",
        "privacy/ledger/home.py",
        "subkey",
        "f'dpladder {purpose}'.encode()",
        "b'dpladder'",
        recorded("streams of a query"),
    ),
    Mutant(
        "a trial's score has noise of twice the size",
        "learn/queries.py",
        "RightCount.bound",
        "1.0",
        "2.0",
        (
            "golden/test_golden.py"
            "::test_a_mechanism_does_what_its_version_did[rule run_trial trial]",
        ),
    ),
    Mutant(
        "trials lie closer together",
        "search/space.py",
        "",
        "SPREAD = 2.0",
        "SPREAD = 1.9",
        recorded("draws stratified"),
    ),
    Mutant(
        "the response surface is wider",
        "search/fit.py",
        "",
        "1.7",
        "1.8",
        recorded("fit pooled"),
    ),
    Mutant(
        "a rung's best is its worst",
        "search/trial.py",
        "by_score",
        "-t.score",
        "t.score",
        recorded("rule select_rung and fit_radius"),
    ),
    Mutant(
        "a search puts out its second best",
        "search/secret_runs.py",
        "best",
        "1",
        "2",
        recorded("search papernot_steinke, more runs"),
    ),
    Mutant(
        "proposals take scores to be alike further away",
        "searches/dp_hypo/search.py",
        "",
        "0.15",
        "0.16",
        recorded("proposals of dp_hypo"),
    ),
    # Finished work: versions, tuning by hand, and prices that were too low.
    Mutant(
        "a job runs whatever code is there",
        "jobs/reservation.py",
        "find_reservation",
        "_check_code(task, charges)",
        "pass",
        ("jobs/test_reserved.py",),
    ),
    Mutant(
        "a reservation stands for other code",
        "privacy/ledger/book.py",
        "admit",
        "(h.declared, h.versions, h.code) == (item.spends, item.versions, item.code)",
        "h.declared == item.spends",
        ("jobs/test_reserved.py",),
    ),
    Mutant(
        "a statement may claim any total",
        "privacy/statement/check.py",
        "check",
        "problems += _check_totals(lineage, dataset)",
        "",
        ("privacy/statement/test_statement.py",),
    ),
    Mutant(
        "a price that was too low stays",
        "privacy/ledger/unsound.py",
        "true_spends",
        "replace(s, event=bug.true(s.event))",
        "s",
        (f"{BOOK}::test_what_was_priced_too_low_is_charged_at_what_it_costs",),
    ),
    Mutant(
        "who goes on has seen nothing",
        "privacy/ledger/book.py",
        "_tokens_taken_up_again",
        "(charge.continued or charge.reserved) < last",
        "(charge.continued or charge.reserved) > last",
        ("workflow/test_day_two.py::test_a_run_that_goes_on_after_looking_says_so",),
    ),
    Mutant(
        "who resumes what was committed has seen nothing",
        "privacy/ledger/book.py",
        "_tokens_taken_up_again",
        'charge.status in ("RESERVED", "COMMITTED")',
        'charge.status == "RESERVED"',
        (f"{BOOK}::test_who_resumes_what_was_committed_has_seen_what_was_released_meanwhile",),
    ),
    Mutant(
        "own code that never finished has shown nothing",
        "privacy/ledger/state.py",
        "fold",
        'None if body["draws"] else state.entries',
        "None",
        (f"{BOOK}::test_own_code_counts_as_released_from_commit_on",),
    ),
    Mutant(
        "own code was released when it finished",
        "privacy/ledger/state.py",
        "fold",
        'state.items[body["token"]].released or state.entries',
        "state.entries",
        (f"{BOOK}::test_own_code_counts_as_released_from_commit_on",),
    ),
    Mutant(
        "questions committed together share the first one's noise",
        "privacy/release/store.py",
        "_produce",
        "_work_of_question(ledger, place, questions[place], charges[place], seed)",
        "_work_of_question(ledger, place, questions[0], charges[0], seed)",
        (f"{STORE}::test_questions_committed_together_have_each_its_own_noise",),
    ),
    Mutant(
        "an answer may have another one's noise",
        "privacy/release/store.py",
        "_produce",
        "_check_noise(work.meter.source, question, charges[work.place])",
        "",
        (f"{STORE}::test_an_answer_with_the_noise_of_another_is_not_kept",),
    ),
    # Questions without names, and what stands in a figure.
    Mutant(
        "a name is in the question",
        "plan/job_identity.py",
        "question",
        "question_of(known_by, job.rule, wildcards)",
        "question_of(known_by, job.rule, {**wildcards, 'name': job.experiment})",
        (f"{PLAN}::test_what_is_paid_for_costs_nobody_anything_under_any_name",),
    ),
    Mutant(
        "a name is in the query",
        "jobs/release.py",
        "ReleaseRequest._query_of",
        "self.reservation.question",
        "self.reservation.question + self.task.experiment",
        ("month/test_found.py::test_a_name_is_free_there_and_back",),
    ),
    Mutant(
        "a model's figure has nothing earlier in it",
        "privacy/statement/build.py",
        "_cost_with_earlier",
        "figure_of([*borne, *earlier], delta) if earlier else None",
        "None",
        (f"{STATED}::test_what_was_planned_after_results_is_stated_with_them",),
    ),
    Mutant(
        "a choice among models costs no more than one of them",
        "privacy/statement/build.py",
        "cost_of_choice",
        "len(models) > 1",
        "len(models) > 99",
        (f"{STATED}::test_a_choice_among_models_costs_what_all_of_them_do",),
    ),
    Mutant(
        "a choice among models has not seen the retired ones",
        "privacy/statement/build.py",
        "_stated",
        "cost_of_choice(everything, terms.delta)",
        "cost_of_choice(lines, terms.delta)",
        (f"{STATED}::test_a_choice_among_models_costs_what_all_of_them_do",),
    ),
    Mutant(
        "what others planned after results leaves the guarantee",
        "privacy/statement/build.py",
        "_stated",
        "earlier_releases(everything)",
        "earlier_releases(lines)",
        (f"{STATED}::test_what_others_planned_after_results_leaves_no_guarantee",),
    ),
    Mutant(
        "one question reads two sources",
        "plan/plan.py",
        "make_plan",
        "_refuse_two_sources(project, items)",
        "",
        (f"{PLAN}::test_one_question_of_two_samples_is_refused_until_versions_tell_them_apart",),
    ),
    Mutant(
        "a version of the data is of two sources",
        "plan/plan.py",
        "make_plan",
        "_refuse_two_versions(project)",
        "",
        (f"{PLAN}::test_one_question_of_two_sources_is_refused_until_versions_tell_them_apart",),
    ),
    Mutant(
        "who asks last sets the price",
        "plan/plan.py",
        "make_plan",
        "cost.final_costs(project, name, config, target, cost.flatten_spends(stood_on), priced)",
        "cost.final_costs(project, name, config, target, cost.flatten_spends(stood_on), {})",
        (f"{PLAN}::test_who_asks_first_in_the_config_prices_what_is_shared",),
    ),
    Mutant(
        "a message names whoever asked first",
        "privacy/ledger/book.py",
        "_commit.decide",
        "asked_by or charge.job",
        "charge.job",
        (f"{BOOK}::test_a_refusal_names_the_job_by_its_name_of_today",),
    ),
    Mutant(
        "an edit pays again unsaid",
        "plan/startup.py",
        "refuse_new_charges",
        "edits.refuse_unconfirmed_repeats(project, plan, states)",
        "",
        ("plan/test_advice.py::test_what_a_refusal_advises_works",),
    ),
    Mutant(
        "what an older plan chose stands, paid for or not",
        "plan/resolve.py",
        "_is_paid",
        "any((state.answer(question) for _, question in job_identity.questions(chosen, name)))",
        "True",
        ("plan/test_resolve.py::test_a_choice_that_nobody_paid_for_is_made_anew",),
    ),
    Mutant(
        "what was paid for is chosen anew",
        "plan/resolve.py",
        "paid_choices",
        "paid_by_name[name] = choices if choices in paid else paid[-1]",
        "pass",
        ("plan/test_resolve.py::test_a_choice_that_nobody_paid_for_is_made_anew",),
    ),
    Mutant(
        "what is answered is planned as a charge",
        "plan/table.py",
        "_cost_after_plan",
        "state.answer(item.question) is None",
        "True",
        ("month/test_found.py::test_a_new_name_asks_no_room_of_a_lifetime",),
    ),
    Mutant(
        "what was cut off is answered by another version than is told",
        "jobs/release.py",
        "_check_versions",
        "older and (cut_off or charge.status == 'RESERVED')",
        "older and charge.status == 'RESERVED'",
        ("month/test_found.py::test_what_was_cut_off_is_no_newer_versions_answer",),
    ),
    Mutant(
        "an upgrade makes finished work due",
        "plan/reuse.py",
        "with_answers",
        "replace(project, reused_versions=answers, anew=anew)",
        "replace(project, answers={}, anew=anew)",
        (
            "workflow/test_invalidation.py"
            "::test_a_version_that_rises_keeps_what_was_released_until_it_is_asked_anew",
        ),
    ),
    Mutant(
        "what an older version answered is not found again",
        "jobs/release.py",
        "ReleaseRequest._query",
        "(known_by, *older)",
        "(known_by,)",
        ("month/test_found.py::test_data_that_comes_back_has_the_answer_of_its_version",),
    ),
    Mutant(
        "a rule that asks nothing is in the question",
        "plan/job_identity.py",
        "_question_id",
        "RULE_SPECS[name].releases and name not in FREE",
        "not RULE_SPECS[name].prepares",
        ("plan/test_identity.py::test_a_rule_that_asks_nothing_comes_and_goes_unnoticed",),
    ),
    Mutant(
        "a key that came later asks anew where it asks nothing",
        "config/section.py",
        "values_of",
        "NeutralAt(getattr(section, name)) not in fields[name].metadata",
        "True",
        ("plan/test_identity.py::test_a_key_added_at_its_neutral_value_changes_no_question",),
    ),
    # Caps and views of learners: cells of the audit's grid.
    Mutant(
        "a unit of several records may add several times the clip",
        "learn/queries.py",
        "GradientSum.bound",
        "self.clip / constants.cap",
        "self.clip",
        (
            "golden/test_golden.py"
            "::test_a_mechanism_does_what_its_version_did[hyfree_dp add_remove]",
        ),
    ),
    Mutant(
        "a record's views are clipped one by one",
        "learn/linear.py",
        "gradient_norms",
        "(squares.clamp_(min=0.0).sqrt_() + CANCELLED * lengths.sum(2)) / views",
        "(squares.clamp_(min=0.0).sqrt_() + CANCELLED * lengths.sum(2)) / views ** 2",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[gradients]",),
    ),
    Mutant(
        "older versions are told of nobody",
        "plan/reuse.py",
        "_raised_versions",
        "then < now",
        "then > now",
        ("plan/test_reuse.py",),
    ),
    Mutant(
        "a statement forgets how releases were made",
        "privacy/statement/build.py",
        "_stated",
        "made_texts.get(charge.token, '')",
        "''",
        ("plan/test_reuse.py",),
    ),
    Mutant(
        "a model card forgets how its model was made",
        "use/card.py",
        "_stated",
        "privacy['told']",
        "()",
        ("plan/test_reuse.py",),
    ),
    Mutant(
        "a newer format is read as if it were known",
        "formats.py",
        "check",
        "number <= known",
        "number <= known + 1",
        ("workflow/test_newer.py",),
    ),
    Mutant(
        "a newer ledger is called damaged",
        "privacy/ledger/journal.py",
        "_read_entry",
        """try:
    entry = {} if chain.torn else _decode(journal, seq, data)
    if not entry:
        return
    if was_torn and entry['type'] != REPAIRED:
        chain.problems.append(f'entry {seq - 1} is damaged: its end is missing')
    if entry['seq'] != seq or previous not in (entry['previous'], ''):
        chain.problems.append(f'entry {seq} does not follow entry {seq - 1}: '
            'one of the two was put in place of another')
    if entry['type'] != REPAIRED:
        fold(entry['type'], entry['body'], str(entry.get('by', {}).get('user', '')))
except Newer:
    raise
except DpladderError as error:
    chain.problems.append(f'entry {seq} {error}')
except (LookupError, TypeError, ValueError):
    chain.problems.append(f'entry {seq} cannot be understood: '
        'was it written by a newer version, or before 1.0?')""",
        """try:
    entry = {} if chain.torn else _decode(journal, seq, data)
    if not entry:
        return
    if was_torn and entry['type'] != REPAIRED:
        chain.problems.append(f'entry {seq - 1} is damaged: its end is missing')
    if entry['seq'] != seq or previous not in (entry['previous'], ''):
        chain.problems.append(f'entry {seq} does not follow entry {seq - 1}: '
            'one of the two was put in place of another')
    if entry['type'] != REPAIRED:
        fold(entry['type'], entry['body'], str(entry.get('by', {}).get('user', '')))
except DpladderError as error:
    chain.problems.append(f'entry {seq} {error}')
except (LookupError, TypeError, ValueError):
    chain.problems.append(f'entry {seq} cannot be understood: '
        'was it written by a newer version, or before 1.0?')""",
        ("workflow/test_newer.py",),
    ),
    Mutant(
        "a newer cache is written anew",
        "data/cache.py",
        "verify_cache",
        """try:
    open_cache(path, key)
except Newer:
    raise
except DpladderError as error:
    return str(error)""",
        """try:
    open_cache(path, key)
except DpladderError as error:
    return str(error)""",
        ("workflow/test_newer.py",),
    ),
    Mutant(
        "a model is stated at its own price",
        "privacy/statement/documents.py",
        "StatedModel.stated",
        "self.with_earlier or Cost(self.epsilon, self.mu)",
        "Cost(self.epsilon, self.mu)",
        ("privacy/statement/test_statement.py",),
    ),
    # What neighbours in a sample are.
    Mutant(
        "a draw in a sample need not say how far a unit moves it",
        "privacy/accounting/draws.py",
        "_check_samples",
        "not draw.entering or draw.sensitivity < sampled_sensitivity(draw.entering, relation) * "
        "(1.0 - "
        "EQUAL)",
        "draw.sensitivity < sampled_sensitivity(draw.entering, relation) * (1.0 - EQUAL)",
        (
            "privacy/accounting/test_draws.py"
            "::test_a_sum_over_a_sample_declares_how_far_neighbours_lie_from_nobody_sampled",
        ),
    ),
    Mutant(
        "an audit compares units in a sample with each other alone",
        "audit/engine/attack.py",
        "_audit",
        "[Finding(name, 'runs that the meter refused', 0, 0, 0, 0), Finding(name, 'draws made "
        "twice', 0, _count_repeated_draws(mechanism, used), 0, 0), "
        "_find_randomness_outside_meter(mechanism, "
        "streams(f'{name} outside', '0')), _independence(name, scores, chance), "
        "_scale(name, scores, chance), _distribution(name, scores, chance), "
        "_sensitivity(mechanism, norms[worst]), "
        "_check_declared_sensitivity(mechanism, still), *_check_sampled_sensitivity(mechanism, "
        "still), _epsilon(mechanism, streams, "
        "mechanism.neighbours[worst], shifts[worst], delta, chance) if (rate := "
        "_single_sample_rate(mechanism)) is None else _epsilon_of_sample(mechanism, streams, "
        "still, "
        "rate, delta, chance)]",
        "[Finding(name, 'runs that the meter refused', 0, 0, 0, 0), Finding(name, 'draws made "
        "twice', 0, _count_repeated_draws(mechanism, used), 0, 0), "
        "_find_randomness_outside_meter(mechanism, "
        "streams(f'{name} outside', '0')), _independence(name, scores, chance), "
        "_scale(name, scores, chance), _distribution(name, scores, chance), "
        "_sensitivity(mechanism, norms[worst]), "
        "_check_declared_sensitivity(mechanism, still), _epsilon(mechanism, streams, "
        "mechanism.neighbours[worst], "
        "shifts[worst], delta, chance) if (rate := _single_sample_rate(mechanism)) is None else "
        "_epsilon_of_sample(mechanism, streams, still, rate, delta, chance)]",
        (
            "privacy/audit/test_attack.py"
            "::test_a_unit_that_enters_a_sample_is_measured_from_nobody_sampled",
        ),
    ),
    Mutant(
        "an audit of a sample forgets who is outside it",
        "audit/engine/attack.py",
        "_audit",
        "(rate := _single_sample_rate(mechanism)) is None",
        "True or (rate := _single_sample_rate(mechanism)) is None",
        (
            "audits/test_kinds.py"
            "::test_losses_that_move_in_a_sample_as_on_a_full_batch_are_caught_by_what_is_released",
        ),
    ),
    # What a source is.
    Mutant(
        "a linked file is read wherever it lies",
        "data/folders.py",
        "_folder.read",
        "b'' if files[index] in shut else bytes_of(files[index])",
        "bytes_of(files[index])",
        ("data/test_hostile.py::test_a_file_that_is_a_link_counts_as_nothing",),
    ),
    Mutant(
        "links lead out of a source",
        "data/folders.py",
        "Tree._follow",
        "not self._is_inside_link(link)",
        "False",
        (
            "data/test_hostile.py"
            "::test_a_link_that_leads_round_or_out_is_refused_and_named_to_its_owner_alone",
        ),
    ),
    Mutant(
        "a head is paid for whose network cannot be trained",
        "jobs/estimate_head.py",
        "release_of.ready",
        "weights_of(reads.network).ready(reads.network, constants, task.resources)",
        "pass",
        ("jobs/test_ready.py::test_a_head_is_charged_only_where_its_network_can_be_trained",),
    ),
    Mutant(
        "a head is another for each network that starts from it",
        "jobs/task.py",
        "",
        "('places', 'question_id', 'network', 'stops')",
        "('places', 'question_id', 'stops')",
        ("jobs/test_ready.py::test_a_head_is_charged_only_where_its_network_can_be_trained",),
    ),
    Mutant(
        "a search is charged before it is known that it can train",
        "jobs/private_search.py",
        "release_of",
        "single(task, reservation, spends, declared.draws, inputs, ('weights',), produce, ready)",
        "single(task, reservation, spends, declared.draws, inputs, ('weights',), produce)",
        ("jobs/test_ready.py::test_what_cannot_be_trained_is_refused_before_it_is_charged",),
    ),
    Mutant(
        "a lineage is opened under terms that its first plan breaks",
        "plan/startup.py",
        "refuse_new_charges",
        "terms, units = (plan.terms[lineage], _units_of(project, lineage))",
        """if state.terms is None:
    continue
terms, units = (plan.terms[lineage], _units_of(project, lineage))""",
        ("plan/test_advice.py",),
    ),
    Mutant(
        "what private selections need is told too small",
        "privacy/ledger/limits.py",
        "lifetime_problem",
        "round_up(math.exp(need.weight) + 1e-06, 2)",
        "f'{math.exp(need.weight):.3g}'",
        ("plan/test_advice.py",),
    ),
    Mutant(
        "a trial on public records counts a record less",
        "jobs/run_trial.py",
        "_write",
        "len(counted.labels)",
        "len(counted.labels) - 1",
        recorded("rule run_trial trial_on_public_records"),
    ),
    Mutant(
        "a trial solves other sums than were released",
        "methods/dp_ls/train.py",
        "_combined_sum",
        "return before",
        "return 1.001 * before",
        recorded("rule run_trial trial_from_statistics"),
    ),
    # A month of edits: what must never be paid for twice, nor stated too low, and advice that leads
    # somewhere.
    Mutant(
        "a reservation that was not needed stays charged",
        "privacy/release/store.py",
        "_publish_answer",
        """ledgers.refund(ledger, [token for token in unused if token != finished.token])
_sweep(ledger, finished)""",
        "_sweep(ledger, finished)",
        ("month/test_found.py::test_paying_again_for_what_is_unchanged_is_free",),
    ),
    Mutant(
        "who was killed asks another question",
        "privacy/release/store.py",
        "query_digest",
        "parts",
        "parts | {'at': os.getpid()}",
        ("month/test_found.py::test_killed_anywhere_a_project_pays_once",),
    ),
    Mutant(
        "a figure leaves out what was tuned by hand",
        "privacy/statement/build.py",
        "_cost_with_earlier",
        "[line for line in _releases_seen_before(borne, lines) if line not in borne]",
        "[line for line in _releases_seen_before(borne, lines) if line not in borne and not "
        "line.superseded]",
        ("month/test_found.py::test_a_models_figure_counts_what_was_tuned_by_hand_before_it",),
    ),
    Mutant(
        "terms are corrected under which something was committed",
        "privacy/ledger/state.py",
        "State.binding",
        "any(charge.used for charge in self.items.values())",
        "False",
        (CORRECTED,),
    ),
    Mutant(
        "what was reserved under terms that were corrected may still be committed",
        "privacy/ledger/state.py",
        "fold",
        "h.status == 'RESERVED'",
        "False",
        (CORRECTED,),
    ),
    Mutant(
        "features of other data lie at the same address",
        "data/cache.py",
        "_cache_name",
        "name not in without",
        "name not in (*without, 'commitment', 'units')",
        ("data/test_extract.py",),
    ),
    Mutant(
        "a plan looks at no anchor",
        "commands/plan.py",
        "plan",
        "states_here(project)",
        "__import__('dpladder.plan.startup', fromlist=['']).known_states(project)",
        ("workflow/test_homes.py::test_a_home_put_back_in_time_is_refused[lose_home-both]",),
    ),
    Mutant(
        "a trial beside restored ones is one of those once more",
        "privacy/release/store.py",
        "_produce_unfinished",
        "places[work.place]",
        "work.place",
        ("privacy/release/test_store.py",),
    ),
    Mutant(
        "another device's mean of a sample asks anew",
        "privacy/ledger/features.py",
        "first_found_value",
        "path.read_bytes()",
        "value",
        ("month/test_found.py::test_what_is_found_of_a_sample_on_another_device_is_what_was_lost",),
    ),
    Mutant(
        "research has a lifetime",
        "plan/table.py",
        "plan_document",
        "None if plan.terms[lineage].mode == 'research' else plan.terms[lineage].lifetime_epsilon",
        "plan.terms[lineage].lifetime_epsilon",
        ("month/test_found.py::test_research_is_refused_nothing_for_what_was_spent",),
    ),
    # Public records that guide a descent.
    Mutant(
        "private records guide steps without noise",
        "learn/curator.py",
        "Curator._guide",
        "engine.guide_of(model, sample, self._constants, self._resources)",
        "engine.guide_of(model, self._data, self._constants, self._resources)",
        ("audits/test_blind.py::test_no_learner_follows_from_records[dp_gd]",),
    ),
    Mutant(
        "an answer of one number has no noise",
        "learn/curator.py",
        "Curator._answer",
        "question.step is not None",
        "question.step is not None or total.ndim == 0",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[counts]",),
    ),
    Mutant(
        "the look at a public sample is not declared",
        "learn/guide.py",
        "queries",
        "(gradients, look_query(learner, hyper)) if asks_for_look(learner) else (gradients,)",
        "(gradients,)",
        ("learn/test_guide.py::test_a_look_is_one_count_at_its_part_of_the_trainings_mu_squared",),
    ),
    Mutant(
        "steps spend what the look spends too",
        "learn/guide.py",
        "hyper_after_look",
        "replace(hyper, mu=gdp.remaining(hyper.mu, [_mu_of_look(learner, hyper)]))",
        "hyper",
        ("learn/test_guide.py::test_a_look_is_one_count_at_its_part_of_the_trainings_mu_squared",),
    ),
    Mutant(
        "a network's steps spend what its look spends too",
        "learn/guide.py",
        "queries",
        "hyper_after_look(learner, hyper)",
        "hyper",
        ("learn/test_guided_network.py::test_a_networks_steps_pay_for_its_look",),
    ),
    Mutant(
        "the sample that guides a bought head is no part of its mechanisms",
        "plan/rule_specs.py",
        "_guide",
        "spec.trains or issubclass(spec.reads, rule_params.EstimateHead)",
        "spec.trains",
        (
            "plan/test_resolve.py"
            "::test_a_sample_guides_a_head_that_is_bought_and_the_network_above_it",
        ),
    ),
    Mutant(
        "people who measured a guided model pay for its count at every run",
        "plan/resolve.py",
        "_follow_measured_config",
        "tested.learner",
        "config.learner",
        (
            "plan/test_resolve.py"
            "::test_what_measures_a_guided_model_is_asked_as_the_ledger_knows_it",
        ),
    ),
    Mutant(
        "what guides a descent is no part of its question",
        "jobs/features.py",
        "shared_inputs",
        "{SAMPLE: part_of(task, SAMPLE).name}",
        "{}",
        ("jobs/test_features.py::test_a_sample_that_guides_is_a_part_of_the_question",),
    ),
    Mutant(
        "a rule forgets what it read",
        "config/rules.py",
        "Traced.__getattr__",
        "self._read.add(at)",
        "None",
        ("config/test_bad.py::test_one_mistake_is_not_told_twice_through_its_echo",),
    ),
    Mutant(
        "a rule forgets which kind a section is",
        "config/rules.py",
        "Traced.__init__",
        "read.add((*at, 'name'))",
        "None",
        ("config/test_bad.py::test_one_mistake_is_not_told_twice_through_its_echo",),
    ),
    Mutant(
        "no model is compared with its largest class",
        "report/model_chapter.py",
        "most_frequent",
        "test.majority",
        "None",
        ("report/test_page.py::test_a_model_that_does_not_beat_the_largest_class_is_said_not_to",),
    ),
    Mutant(
        "a ledger's statement speaks of a config",
        "privacy/statement/page.py",
        "statement_wording",
        "WORKFLOW if statement.config else LEDGER",
        "WORKFLOW",
        ("external_ledger/test_ledger.py::test_the_statement_follows_from_records_and_ledger",),
    ),
    Mutant(
        "of two classes the majority is not told from the rarer one",
        "report/model_chapter.py",
        "largest",
        "1.0 - rare if majority is None and rare is not None and (classes == 2) else majority",
        "majority",
        (
            "jobs/test_summarise.py"
            "::test_of_two_classes_the_rarer_ones_share_tells_the_largers[None-0.25-2-0.75]",
        ),
    ),
    Mutant(
        "a page tells where a network lies",
        "plan/about.py",
        "_network",
        "Path(name.removeprefix(HUGGING_FACE)).name",
        "name.removeprefix(HUGGING_FACE)",
        ("plan/test_about.py::test_no_path_of_the_operators_is_told",),
    ),
    Mutant(
        "a page tells where a source lies",
        "plan/about.py",
        "_data",
        "kind.is_private_file",
        "kind.columns",
        ("plan/test_about.py::test_no_path_of_a_source_is_told",),
    ),
    Mutant(
        "a statement's sentence has two figures",
        "privacy/statement/page.py",
        "first_line",
        "_limit_sentence(lineage, limit, dataset.delta, dataset.unit)",
        "_limit_sentence(lineage, limit, dataset.delta, dataset.unit) + f' So far epsilon = "
        "{spent}.'",
        ("privacy/statement/test_statement.py::test_the_page_begins_with_the_lifetime",),
    ),
    Mutant(
        "a backup keeps what its ledgers do not know",
        "privacy/ledger/backup.py",
        "_is_known_release",
        "room != 'releases'",
        "True",
        ("privacy/ledger/test_backup.py",),
    ),
    Mutant(
        "a backup goes back behind results",
        "privacy/ledger/backup.py",
        "_check_restored",
        "verify(Ledger(home, lineage), seen)",
        "verify(Ledger(home, lineage))",
        ("privacy/ledger/test_backup.py",),
    ),
    Mutant(
        "a backup that was cut short is whole",
        "privacy/ledger/backup.py",
        "_nonce",
        "bytes([last])",
        "bytes(1)",
        ("privacy/ledger/test_backup.py",),
    ),
    Mutant(
        "private records are taken for the public sample",
        "jobs/features.py",
        "read",
        "_mapped(task, part_of(task, SAMPLE))",
        "_mapped(task, part)",
        attack("train_final"),
    ),
    Mutant(
        "a lineage that was opened is split anew",
        "plan/resolve.py",
        "_resolve_test_part",
        "asks_for_test or split.rule == 'given' or opened_so",
        "asks_for_test or split.rule == 'given'",
        ("plan/test_split.py",),
    ),
    Mutant(
        "findings are clipped by the largest class of a gradient",
        "learn/linear.py",
        "gradient_norms",
        "squared.sum(1)",
        "squared.amax(1)",
        ("learn/test_findings.py::test_no_record_of_any_findings_weighs_more_than_the_bound",),
    ),
    Mutant(
        "what is unknown of a record is trained on as absent",
        "learn/links.py",
        "Link.subtract_targets",
        "probabilities.sub_(present[..., None]).mul_(known[..., None])",
        "probabilities.sub_(present[..., None])",
        ("learn/test_findings.py::test_a_class_that_is_unknown_has_no_slope_and_no_loss",),
    ),
    Mutant(
        "a loss of what is unknown is followed by networks",
        "learn/links.py",
        "Link.losses",
        "((softplus(shifted) - shifted * present) * known).sum(dim=dim)",
        "(softplus(shifted) - shifted * present).sum(dim=dim)",
        (
            "learn/test_mlp.py::"
            "test_the_mlps_gradient_of_findings_is_clipped_whole_and_what_is_unknown_has_none",
        ),
    ),
    Mutant(
        "what is unknown of a record is tested as absent",
        "learn/measures/tables.py",
        "ScoresByFinding.places",
        "-1",
        "0",
        ("learn/test_findings.py::test_what_is_told_of_each_finding_without_noise_is_exact",),
    ),
    Mutant(
        "a record counts once for each finding in a score",
        "learn/scorers.py",
        "shares_of_findings",
        "1.0 - wrong / np.maximum(known, 1)",
        "known - wrong",
        (
            "learn/test_findings.py::"
            "test_a_record_counts_a_share_whatever_its_findings_and_logits_are",
            "audits/test_kinds.py::test_every_kind_passes_a_short_audit[scores]",
        ),
    ),
    Mutant(
        "noise for one count where a record is in one of each finding",
        "learn/queries.py",
        "Cells.bound",
        "math.sqrt(self.each)",
        "1.0",
        (
            "learn/test_findings.py"
            "::test_no_unit_moves_counts_of_findings_further_than_their_noise_is_for",
        ),
    ),
    Mutant(
        "data without any finding is what the config means",
        "data/stops.py",
        "reason_to_stop",
        "by_class[[0, 2]]",
        "by_class[[2]]",
        ("data/test_findings.py::test_data_without_any_finding_cannot_be_meant",),
    ),
    Mutant(
        "a run without anybody stops",
        "data/prepare.py",
        "_check",
        "not source.labels and (public is not None or dataset.declared_public)",
        "not source.labels",
        ("data/test_prepare.py::test_an_empty_source_is_refused_where_it_is_public_alone",),
    ),
    Mutant(
        "a unit is counted in each class that one of its records is of",
        "learn/counts.py",
        "units_by_class",
        "left &= ~members",
        "pass",
        (
            "data/test_census.py"
            "::test_a_unit_adds_one_to_all_and_to_one_class"
            "_whatever_its_records_and_its_neighbours_are",
        ),
    ),
    Mutant(
        "a unit of which no finding is known has none of them and all",
        "learn/counts.py",
        "units_by_class",
        "some & ~lacking",
        "~lacking",
        (
            "data/test_census.py"
            "::test_a_unit_adds_one_to_all_and_to_one_class"
            "_whatever_its_records_and_its_neighbours_are",
        ),
    ),
    Mutant(
        "each record of a unit is counted",
        "learn/counts.py",
        "units_by_class",
        "labels[counting[first]]",
        "labels[counting]",
        attack("count_units"),
    ),
    Mutant(
        "a unit is taken to move one of the counts",
        "learn/queries.py",
        "UnitsByClass.bound",
        "math.sqrt(2.0)",
        "1.0",
        attack("count_units"),
    ),
    Mutant(
        "a run stops by how many private records count",
        "jobs/merge_features.py",
        "merge_features",
        "part in task.reads.public_parts and part not in FEW",
        "part not in FEW",
        (
            "workflow/test_non_interference.py"
            "::test_whether_a_run_stops_follows_from_noised_counts_alone",
        ),
    ),
    Mutant(
        "units are counted under noise, and refused by how many there are",
        "jobs/count_units.py",
        "release_of",
        "noised = counts.ask(query.at(), read_raw(train), constants, meter)",
        "noised = counts.ask(query.at(), read_raw(train), constants, meter)\n"
        "known = counts.sum_of(query.at(), read_raw(train), constants)\n"
        "reads = task.reads\n"
        "if reason_to_stop(known, reads.nominal_size, reads.stops, reads.labels):\n"
        "    raise Refused('the data does not look like what the config describes')",
        (
            "workflow/test_non_interference.py"
            "::test_no_exit_code_tells_whether_one_more_person_is_there",
        ),
    ),
    Mutant(
        "noise stops data that lies on a line",
        "data/stops.py",
        "reason_to_stop",
        "NormalDist().inv_cdf(1 - STOPPED_BY_NOISE / len(rest))",
        "0.0",
        ("data/test_census.py::test_noise_alone_stops_nobody_whose_data_lies_on_the_lines",),
    ),
    Mutant(
        "how many are of a class that is rare by declaration stops a run",
        "data/stops.py",
        "reason_to_stop",
        "stops != 'lost or lopsided' or len(by_class) == 1",
        "len(by_class) == 1",
        (
            "data/test_census.py"
            "::test_a_class_that_is_rare_by_declaration_stops_no_run_however_few_are_of_it",
        ),
    ),
    Mutant(
        "a plan forgets that a record is in a count of each finding",
        "plan/notes.py",
        "_rarest",
        "count if many else 1.0",
        "1.0",
        ("plan/test_notes.py::test_findings_are_hidden_by_the_noise_of_all_of_them",),
    ),
    Mutant(
        "a student is taught on private records",
        "plan/rule_specs.py",
        "_student_parts",
        "'unlabelled'",
        "'train'",
        ("plan/test_plan.py::test_what_is_found_for_nothing_is_found_in_public_sources",),
    ),
    Mutant(
        "a student is counted on a private test for nothing",
        "plan/rule_specs.py",
        "_student_parts",
        "config.exact_test",
        "True",
        ("plan/test_plan.py::test_what_is_found_for_nothing_is_found_in_public_sources",),
    ),
    Mutant(
        "an image of which two rows say different things is two records",
        "data/folders.py",
        "from_images_and_table",
        "text('/'.join(ways[place]))",
        "f'{place} {row}'",
        (
            "data/test_images_with_table.py::"
            "test_an_image_of_which_two_rows_differ_counts_as_nothing_and_copies_count_once",
        ),
    ),
    Mutant(
        "a row of a table is read by way of a link that leads out",
        "data/folders.py",
        "from_images_and_table",
        "file in shut",
        "False",
        (
            "data/test_images_with_table.py"
            "::test_nothing_outside_the_folder_is_read_by_way_of_a_row_or_a_link",
        ),
    ),
    Mutant(
        "an impact assessment guarantees what is spent so far",
        "privacy/statement/facts.py",
        "facts_of",
        "round_up(bound.epsilon)",
        "round_up(dataset.lifetime_spent)",
        (
            "privacy/statement/test_registry.py::"
            "test_the_assessment_has_the_four_parts_of_the_law_and_room_for_people",
        ),
    ),
    Mutant(
        "what people say is HTML in an impact assessment",
        "privacy/statement/impact.py",
        "impact_page",
        "html.escape(one['answer'])",
        "one['answer']",
        (
            "privacy/statement/test_registry.py::"
            "test_what_people_say_of_a_deployment_stands_on_no_page_as_html",
        ),
    ),
    Mutant(
        "a member of a group spends beyond their limit",
        "privacy/ledger/book.py",
        "check_user",
        "total > limit",
        "False",
        ("privacy/ledger/test_team.py::test_a_limit_of_a_user_holds_within_the_lineages_own",),
    ),
    Mutant(
        "a member of a group changes its limits and its key",
        "privacy/ledger/home.py",
        "check_owners",
        "status.st_mode & 0o027",
        "False",
        ("privacy/ledger/test_team.py::test_limits_that_others_could_have_changed_are_refused",),
    ),
    Mutant(
        "a home that was opened by mistake is a group's",
        "privacy/ledger/home.py",
        "is_groups",
        "_check_format(home) >= A_GROUPS",
        "True",
        ("privacy/ledger/test_team.py::test_a_home_that_was_opened_by_mistake_is_no_groups",),
    ),
    Mutant(
        "a folder in one's own home is open to one's group",
        "privacy/ledger/home.py",
        "make_folder",
        "0o077",
        "0o007",
        ("privacy/ledger/test_team.py::test_folders_of_a_users_own_home_are_that_users_alone",),
    ),
    Mutant(
        "a first head's noise is for one record that enters",
        "search/first_head.py",
        "training_of_head",
        "Space(Search(), learner, constants)",
        "Space(Search(), learner, Constants(constants.n0, constants.classes, constants.dimension))",
        attack("estimate_head"),
    ),
    Mutant(
        "an edited first head is trusted",
        "jobs/reservation.py",
        "_is_release",
        "task.reads.learner.starts_from_private_head",
        "False",
        ("jobs/test_features.py::test_a_head_that_was_bought_must_be_the_one_that_was_released",),
    ),
    Mutant(
        "a first head is counted on a private test for nothing",
        "plan/rule_specs.py",
        "_shows_head",
        "config.exact_test",
        "True",
        ("plan/test_plan.py::test_a_first_head_is_counted_by_itself_on_a_public_test_alone",),
    ),
    Mutant(
        "a network starts at zero above the head that it paid for",
        "learn/finetune/parts.py",
        "start",
        "learner.starts_from_private_head or learner.starts_from_public_head",
        "learner.starts_from_public_head",
        ("learn/test_finetune.py::test_a_network_starts_with_the_public_head_above_it",),
    ),
    Mutant(
        "a matrix with a row an input is trained by its gradient turned round",
        "learn/finetune/forms.py",
        "Product.sums",
        "a.mT @ g if self.turned else g.mT @ a",
        "g.mT @ a",
        (
            "learn/test_finetune.py::"
            "test_a_network_whose_matrices_stand_the_other_way_round_learns_to_speak",
        ),
    ),
    Mutant(
        "a user whose records are one is as many as they are",
        "data/cache.py",
        "_write_pooled",
        "_rows_by_unit(cache.units)",
        "_rows_by_unit(cache.record_ids)",
        ("data/test_pool.py::test_a_user_is_one_record_with_the_mean_of_all_its_records",),
    ),
    Mutant(
        "what counts as nothing is in a user's mean",
        "data/cache.py",
        "_members",
        "labels[rows] >= 0",
        "labels[rows] >= -1",
        (
            "data/test_pool.py::test_what_cannot_count_is_left_out_of_a_mean_and_a_user_without_any"
            "_counts_as_nothing",
        ),
    ),
    Mutant(
        "a user of several groups is of one",
        "data/prepare.py",
        "_pool",
        "len({row.group for row in labelled}) > 1",
        "False",
        ("data/test_pool.py::test_a_user_of_several_groups_counts_as_nothing",),
    ),
    Mutant(
        "a bag is read from where a link in it leads",
        "data/bags.py",
        "bag_of",
        "is_self_contained(bag, name)",
        "name in bag",
        ("data/test_bags.py::test_a_file_that_is_no_bag_counts_as_nothing_and_a_check_says_why",),
    ),
    Mutant(
        "a file claims more rows than can be read",
        "data/bags.py",
        "_mean",
        "rows.size > LARGEST",
        "rows.size > 2**80",
        ("data/test_bags.py::test_a_file_that_is_no_bag_counts_as_nothing_and_a_check_says_why",),
    ),
    Mutant(
        "an exported graph tells findings as if one of them were there",
        "use/graph.py",
        "_open_graph",
        "config['findings']",
        "False",
        ("use/test_findings.py::test_an_export_says_the_same_by_itself",),
    ),
    Mutant(
        "a network is given the marks of answers",
        "network/answers.py",
        "token_vectors",
        "_channel(rows, 0)",
        "_channel(rows, 0) + _channel(rows, 1)",
        (f"{ANSWERS}::test_the_network_sees_no_marks_and_the_loss_no_token_outside_the_context",),
    ),
    Mutant(
        "a loss of answers is over padding too",
        "network/answers.py",
        "losses",
        "~_allowed_tokens(marks)[..., None]",
        "(marks < 0)[..., None]",
        (
            f"{ANSWERS}::test_the_network_sees_no_marks_and_the_loss_no_token_outside_the_context",
            f"{ANSWERS}::test_gradients_and_norms_are_those_of_plain_autograd_one_record_at_a_time",
        ),
    ),
    Mutant(
        "a record counts for more than one right answer",
        "learn/scorers.py",
        "AnswerScorer.shares",
        "((right_shares > 0) & (labels >= 0)).astype(np.float64)",
        "np.nan_to_num(right_shares) * (labels >= 0)",
        (
            f"{ANSWERS}::test_what_is_counted_is_right_or_wrong_and_nothing_without_a_label",
            "audits/test_kinds.py::test_every_kind_passes_a_short_audit[scores]",
        ),
    ),
    Mutant(
        "a question that counts as nothing is answered right",
        "learn/scorers.py",
        "AnswerScorer.shares",
        "(right_shares > 0) & (labels >= 0)",
        "right_shares > 0",
        (f"{ANSWERS}::test_what_is_counted_is_right_or_wrong_and_nothing_without_a_label",),
    ),
    Mutant(
        "answers are no part of what a question says",
        "data/questions.py",
        "content_of",
        "[question, context, answers]",
        "[question, context, []]",
        ("data/test_questions.py::test_questions_that_share_an_id_and_differ_count_as_nothing",),
    ),
    Mutant(
        "an answer that does not stand where it says is trained on",
        "data/questions.py",
        "tokenize_question",
        "context[place : place + len(text)] != text",
        "False",
        ("data/test_questions.py::test_what_is_broken_is_one_record_that_counts_as_nothing",),
    ),
    Mutant(
        "a method may ask what it did not declare",
        "learn/curator.py",
        "Curator._answer",
        "kind is None",
        "False",
        ("audits/test_kinds.py::test_what_was_not_declared_is_not_answered",),
    ),
    Mutant(
        "queries need not be those that were declared",
        "learn/curator.py",
        "Curator.run",
        "counts.refuse_undeclared(query, self._constants, meter)",
        "pass",
        ("audits/test_kinds.py::test_what_was_not_declared_is_not_answered",),
    ),
    Mutant(
        "a sample answers one query twice",
        "learn/curator.py",
        "Curator._sample",
        "seat.mask is None or query.name in seat.seen",
        "seat.mask is None",
        ("audits/test_kinds.py::test_a_query_that_is_asked_again_sees_another_sample",),
    ),
    Mutant(
        "everybody is in a sample",
        "learn/curator.py",
        "_rows",
        "mask is None",
        "True",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[gradients]",),
    ),
    Mutant(
        "a plug-in's weights are as long as they like",
        "learn/moments.py",
        "sums_weighed_per_record",
        "weights.norm(dim=1, keepdim=True).clamp(min=1.0)",
        "1.0",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[class sums]",),
    ),
    Mutant(
        "a plug-in's function of nobody counts",
        "learn/moments.py",
        "sum_of_records",
        "records.counted[rows] & norms.isfinite()",
        "norms.isfinite()",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[any function]",),
    ),
    Mutant(
        "a plug-in's function is not clipped",
        "learn/moments.py",
        "sum_of_records",
        "clip(norms, bound)",
        "clip(norms, 1e9)",
        ("audits/test_kinds.py::test_every_kind_passes_a_short_audit[any function]",),
    ),
    Mutant(
        "a plug-in's function runs on records, not its trace",
        "learn/moments.py",
        "trace_per_record",
        "return traced",
        "return each",
        ("learn/test_curator.py::test_a_plug_ins_function_never_meets_a_record",),
    ),
    Mutant(
        "a learner is tuned by no law of its kappa",
        "config/method.py",
        "LearnerMethod.__post_init__",
        "self.section.searches is not None and self.logit_noise is None",
        "False",
        (
            "learn/test_interface.py::"
            "test_a_method_that_is_tuned_without_a_law_of_its_kappa_is_refused_at_import[rate]",
        ),
    ),
    Mutant(
        "a plug-in's key has the name of a trait",
        "config/plugins.py",
        "check_section",
        "traits & fields.keys()",
        "set()",
        ("workflow/test_plugins.py::test_a_field_by_the_name_of_a_trait_is_refused[sampling]",),
    ),
    Mutant(
        "a plug-in passes for one of dpladder's own",
        "config/plugins.py",
        "methods_of_packages",
        "replace(_method(entry, kind, base), package=package)",
        "_method(entry, kind, base)",
        ("workflow/test_plugins.py::test_an_entry_point_brings_a_method",),
    ),
    Mutant(
        "a learner that samples says that it takes full batches",
        "config/learner_sections.py",
        "Descending.sampling",
        "self.sampling_rate",
        "1.0",
        ("plan/test_plan.py::test_a_training_on_samples_is_booked_inside_its_epsilon",),
    ),
)
